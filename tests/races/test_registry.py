"""Races on a real store, by processes that run the registry's operations as workers do.

CI runs each race once. `RACES_MINUTES=20 pytest tests/races -s` goes on for so long altogether, each time with
another seed, and prints how many rounds there were.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count

import msgspec
import pytest

from mqnamesrv.store import EmbeddedStore
from registry.events.replay import UNKNOWN, replay
from registry.keys import Keys
from registry.registration.script_calls import CLAIM_MS
from registry.store.connect import connect
from tests.races.clean_up import clean_up_ends
from tests.races.clients import (
    Step,
    deletes,
    disconnects,
    heartbeats,
    keeps_up,
    race,
    reads,
    registers,
    rewrites,
    sets,
    unregisters,
)
from tests.races.history import groups
from tests.races.judgement import judged
from tests.races.operations import HUGE, LARGE, SMALL
from tests.registry.check_tables import check_tables
from tests.registry.stored import Store, assert_replays, entries

MINUTES = float(os.environ.get("RACES_MINUTES", "0"))
EDGES = (LARGE[0], LARGE[499], LARGE[500], LARGE[1000], LARGE[-1])  # of the slices
ELSEWHERE = "127.9.9.9:10911"
SHORT_MS = 8  # a lease that is over before the next registration, now and then


class Race(msgspec.Struct, frozen=True):
    """Clients with `rounds` steps, clients that go on until these are done, the topics that are read, `claim_ms`."""

    steps: dict[str, Step]
    meanwhile: dict[str, Step]
    rounds: int
    topics: tuple[str, ...] = SMALL
    claim_ms: int = CLAIM_MS


RACES = {
    "registrations and 104": Race(
        {"w1": registers("b1"), "w2": unregisters("b1")}, {"w3": heartbeats("b1")}, rounds=60
    ),
    "registrations and leases that run out": Race(
        {
            "w1": registers("b1", pause_s=0.02, timeout_ms=SHORT_MS),
            "w2": registers("b2", pause_s=0.02, timeout_ms=SHORT_MS),
        },
        {"w3": heartbeats("b1", pause_s=0.03), "w4": unregisters("b2"), "w5": keeps_up()},
        rounds=60,
    ),
    "registrations and closed connections": Race(
        {"w1": registers("b1", pause_s=0.01)},
        {"w2": disconnects("b1", "w1/1"), "w3": heartbeats("b1")},
        rounds=30,
    ),
    "two brokers, 205, 216, 217 and 327": Race(
        {"w1": registers("b1"), "w2": registers("b2")},
        {"w3": deletes("T1"), "w4": rewrites("b1"), "w5": sets("T1", "b1"), "w6": unregisters("b2")},
        rounds=60,
    ),
    "large tables, 205, 216 and 327": Race(
        {"w1": registers("b1", "large")},
        {"w2": deletes(EDGES[1]), "w3": rewrites("b1")},
        rounds=8,
        topics=EDGES,
    ),
    "slices of two connections, others of the name, 104": Race(
        {
            "w1": registers("b1", "large"),
            "w2": registers("b1", "large", slow=True),
            "w3": registers("b1", "small", 1, acting=False, pause_s=0.05),
        },
        {"w4": unregisters("b1", pause_s=0.05), "w5": unregisters("b1", 1, pause_s=0.05), "w6": keeps_up()},
        rounds=12,
        topics=EDGES,
    ),
    "claims that run out between slices": Race(
        {
            "w1": registers("b1", "large", slow=True),
            "w2": registers("b1", "large", slow=True),
            "w3": registers("b1", "small", pause_s=0.05),
        },
        {"w4": unregisters("b1"), "w5": keeps_up()},
        rounds=3,
        topics=EDGES,
        claim_ms=6,
    ),
    "masters that take over between slices, acting master": Race(
        {
            "w1": registers("b1", "large", acting=True),
            "w2": registers("b1", "large", at=ELSEWHERE, acting=True),
            "w3": registers("b1", "large", 1, acting=True, pause_s=0.05, timeout_ms=30),
        },
        {
            "w4": unregisters("b1", pause_s=0.1),
            "w5": unregisters("b1", at=ELSEWHERE, pause_s=0.1),
            "w6": keeps_up(),
        },
        rounds=8,
        topics=EDGES,
    ),
    "workers killed between slices": Race(
        {
            "w1": registers("b1", "large", dies=True),
            "w2": registers("b2-{}", "large", dies=True),
            "w3": registers("b1", "small", pause_s=0.1),
            "w4": registers("b1", "large", pause_s=0.2),
        },
        {"w5": unregisters("b1", pause_s=0.1), "w6": keeps_up()},
        rounds=8,
        topics=EDGES,
        claim_ms=200,
    ),
    "switches and takeovers of two names": Race(
        {
            "w1": registers("b1", acting=True),
            "w2": registers("b1", number=1, acting=True, pause_s=0.01),
            "w3": registers("b1", number=2, at=ELSEWHERE, acting=False),
            "w4": registers("b2", at=ELSEWHERE, state=1),
            "w5": registers("b2"),
        },
        {"w6": unregisters("b1"), "w7": unregisters("b2", at=ELSEWHERE)},
        rounds=30,
    ),
    "a first table beyond one commit": Race(
        {"w1": registers("b1", "huge")},
        {"w2": unregisters("b1", pause_s=0.4), "w3": rewrites("b1")},
        rounds=2,
        topics=(HUGE[0], HUGE[1500], HUGE[-1]),
    ),
}


def seeds() -> Iterator[int]:
    """Yield the fixed seed; with RACES_MINUTES others, until this race's fraction of the time is over."""
    end = time.monotonic() + 60 * MINUTES / len(RACES) / 2
    for seed in count(1):
        yield seed
        if time.monotonic() > end:
            return


def late_replays_agree(store: Store, keys: Keys) -> None:
    """Assert that a replay from any finished checkpoint round on has the same tables."""
    events = entries(store, keys)
    places = [i for i, event in enumerate(events) if event.get("scope") == "begin"]
    for place in places[-2::-10]:
        late = replay(UNKNOWN, events[place:])
        assert late.whole
        assert_replays(store, keys, late)


@pytest.mark.timeout(180 + 60 * MINUTES)
@pytest.mark.parametrize("name", RACES)
def test_races(each_store: EmbeddedStore, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = RACES[name]
    monkeypatch.setattr("registry.registration.script_calls.CLAIM_MS", chosen.claim_ms)
    meanwhile = chosen.meanwhile | {"reader": reads(chosen.topics)}
    reads_seen, outcomes = 0, Counter[str]()
    for seed in seeds():
        keys = Keys(f"race-{seed}")
        reports = race(each_store.url, keys, chosen.steps, meanwhile, chosen.rounds, seed)
        notes = [note for report in reports.values() for note in report.notes]
        seen = [read for report in reports.values() for read in report.seen]
        assert [report.error for report in reports.values() if report.error] == []
        with connect(each_store.url) as store:
            clean_up_ends(store, keys)
            history = groups(entries(store, keys))
            assert judged(history, notes, [[one] for one in seen]) == [], f"seed {seed}"
            check_tables(store, keys)
            assert_replays(store, keys)
            late_replays_agree(store, keys)
            store.flushall()
        assert any(note.event_id for note in notes)
        reads_seen += len(seen)
        outcomes.update(note.outcome for note in notes)
    assert reads_seen > 10
    print(
        f"\n{name}, {each_store.name}: {seed} races of {chosen.rounds} rounds, {dict(outcomes)}, {reads_seen} reads"
    )
