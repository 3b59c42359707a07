"""Random histories, whole and damaged: tables of them against a fold entry by entry."""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.clean import clean, gaps
from mqpipeline.tables.broker_versions import broker_versions
from mqpipeline.tables.check import checks, newest, rounds_of
from mqpipeline.tables.increments import discontinuous, fresh, moved, positions
from mqpipeline.tables.sessions import sessions
from tests.mqpipeline.rows import rows_of, version_rows
from tests.mqpipeline.stream import Case, Entry, Stream, landed, landing, registered, started
from tests.mqpipeline.tables.histories import Fold, Interval, Namespace

pytestmark = pytest.mark.timeout(300)
SEEDS = range(3)
STEPS = 120
Rows = list[dict[str, Any]]


def history(seed: int) -> tuple[list[Entry], Namespace]:
    """Two incarnations, and what there is at the end; the last entries are a round."""
    before = Namespace(seed)
    before.live(STEPS)
    after = Namespace(seed + 1000, inc=before.now + 50)
    after.live(STEPS)
    after.checkpoint_round()
    return before.stream.entries + after.stream.entries, after


HISTORIES = {seed: history(seed) for seed in SEEDS}


def whole(entries: list[Entry], _: random.Random) -> Rows:
    return [landed(entry) for entry in entries]


def permuted(entries: list[Entry], dice: random.Random) -> Rows:
    rows = whole(entries, dice)
    dice.shuffle(rows)
    return rows


def repeated(entries: list[Entry], dice: random.Random) -> Rows:
    """Some entries are there twice or more, read in the same batch or later."""
    rows = whole(entries, dice)
    again = [dice.choice(rows) | {"batch": dice.randint(1, 5)} for _ in range(len(rows))]
    return rows + again


def in_batches(entries: list[Entry], dice: random.Random) -> Rows:
    batch, rows = 1, []
    for entry in entries:
        batch += dice.random() < 0.1
        rows.append(landed(entry, batch=batch))
    return rows


def set_back(entries: list[Entry], dice: random.Random) -> Rows:
    """A lost primary wrote other entries, and more of them, from some place on; the new one was read from scratch."""
    place = dice.randrange(len(entries) // 2)
    lost = [
        entry._replace(ms=entry.ms + 1, fields=entry.fields | {"kind": "broker_removed", "epoch": "99"})
        for entry in entries[place : place + 40]
    ]
    inc = entries[place].fields["inc"]
    lost = [entry for entry in lost if entry.fields["inc"] == inc]
    before = [landed(entry, batch=1) for entry in entries[:place] + lost]
    return before + [landed(entry, batch=2) for entry in entries]


DAMAGE: list[Callable[[list[Entry], random.Random], Rows]] = [whole, permuted, repeated, in_batches, set_back]


def holed(entries: list[Entry], dice: random.Random) -> Rows:
    """A stretch in the second incarnation is missing, and then one more."""
    begin = next(i for i, entry in enumerate(entries) if entry.fields["inc"] != entries[0].fields["inc"])
    room = (len(entries) - begin) // 4
    for low in (begin + 2 * room, begin + 5):
        entries = entries[:low] + entries[low + dice.randint(1, room) :]
    return whole(entries, dice)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    cases = [
        Case(f"{damage.__name__}/{seed}", damage(entries, random.Random(seed)), None)
        for seed, (entries, _) in HISTORIES.items()
        for damage in [*DAMAGE, holed]
    ]
    return landing(spark, cases).localCheckpoint()


@pytest.fixture(scope="module")
def kept(events: DataFrame) -> DataFrame:
    return clean(events).localCheckpoint()


@pytest.fixture(scope="module")
def stays(kept: DataFrame) -> DataFrame:
    return sessions(kept).localCheckpoint()


@pytest.fixture(scope="module")
def versions(kept: DataFrame) -> DataFrame:
    return version_rows(kept).localCheckpoint()


SESSION = ("broker", "broker_id", "addr", "epoch"), "start_ms", "end_ms", "end_cause"
VERSION = ("topic", "broker", "epoch", "data"), "from_ms", "to_ms", "to_cause"
Shape = tuple[tuple[str, ...], str, str, str]


def intervals(table: DataFrame, shape: Shape) -> dict[str, list[Interval]]:
    """The rows of each namespace, sorted."""
    key, *times = shape
    found: dict[str, list[Interval]] = {}
    for row in table.select("namespace", *key, *times).collect():
        of_it = Interval(tuple(row)[1:-3], *tuple(row)[-3:])
        found.setdefault(row.namespace, []).append(of_it)
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def data_of(versions: DataFrame) -> DataFrame:
    return versions.selectExpr("*", "concat_ws(',', read_queues, write_queues, perm, sys_flag) as data")


@pytest.fixture(scope="module")
def found_sessions(stays: DataFrame) -> dict[str, list[Interval]]:
    return intervals(stays, SESSION)


@pytest.fixture(scope="module")
def found_versions(versions: DataFrame) -> dict[str, list[Interval]]:
    return intervals(data_of(versions), VERSION)


def damages(*of: Callable[[list[Entry], random.Random], Rows]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [f"{one.__name__}/{seed}" for one in of for seed in SEEDS])


@damages(*DAMAGE)
def test_sessions_are_those_of_the_fold(found_sessions: dict[str, list[Interval]], name: str) -> None:
    entries, _ = HISTORIES[int(name[-1])]
    assert found_sessions[name] == sorted(Fold().over(entries).all_sessions(), key=repr)


@damages(*DAMAGE)
def test_versions_are_those_of_the_fold(found_versions: dict[str, list[Interval]], name: str) -> None:
    entries, _ = HISTORIES[int(name[-1])]
    assert found_versions[name] == sorted(Fold().over(entries).all_versions(), key=repr)


def overlaps(rows: list[Interval], of: slice) -> list[tuple[Interval, Interval]]:
    """Neighbours in time of the same thing that overlap."""
    units: dict[tuple[Any, ...], list[Interval]] = {}
    for row in rows:
        units.setdefault(row.key[of], []).append(row)
    found = []
    for unit in units.values():
        unit.sort(key=lambda row: (row.start_ms, row.end_ms is None, row.end_ms or 0))
        pairs = pairwise(unit)
        found += [(one, then) for one, then in pairs if one.end_ms is None or one.end_ms > then.start_ms]
    return found


@damages(*DAMAGE, holed)
def test_nothing_overlaps(
    found_sessions: dict[str, list[Interval]], found_versions: dict[str, list[Interval]], name: str
) -> None:
    assert not overlaps(found_sessions[name], slice(0, 2))
    assert not overlaps(found_versions[name], slice(0, 2))
    assert all(row.end_ms is None or row.start_ms <= row.end_ms for row in found_sessions[name])


@damages(holed)
def test_a_round_heals_a_hole(
    found_sessions: dict[str, list[Interval]], found_versions: dict[str, list[Interval]], name: str
) -> None:
    """Behind the last round, what is open is what is there; and there were holes."""
    _, there = HISTORIES[int(name[-1])]
    causes = {row.end_cause for row in found_sessions[name] + found_versions[name]}
    assert "gap" in causes
    assert {row.key for row in found_sessions[name] if row.end_ms is None} == {
        (broker, id, stay.addr, there.epochs[broker])
        for broker, held in there.brokers.items()
        for id, stay in held.items()
    }
    living = {broker for broker, held in there.brokers.items() if held}
    assert {row.key for row in found_versions[name] if row.end_ms is None and row.key[1] in living} == {
        (topic, broker, there.epochs[broker], text)
        for (broker, topic), text in there.data.items()
        if broker in living
    }


def test_the_fold_at_a_checkpoint_is_the_checkpoint(
    kept: DataFrame, stays: DataFrame, versions: DataFrame
) -> None:
    rows = checks(kept, stays, versions, rounds_of(kept)).collect()
    sound = [row for row in rows if not row.namespace.startswith("holed")]
    rounds = sum(entry.fields.get("scope") == "end" for entries, _ in HISTORIES.values() for entry in entries)
    assert len(sound) == rounds * len(DAMAGE)
    last = {
        row.namespace: (row.inc, row.round) for row in sorted(rows, key=lambda row: (row.inc, row.end_ms))
    }
    assert {row.namespace: (row.inc, row.round) for row in newest(rounds_of(kept)).collect()} == last
    assert all(row.proves for row in sound)
    assert not [row for row in rows if row.proves and (row.members_differing or row.pairs_differing)]
    assert sum(row.members_differing + row.pairs_differing for row in rows if not row.proves) > 0
    assert sum(row.members for row in rows) > rounds
    assert sum(row.pairs for row in rows) > rounds


def cut(entries: list[Entry], dice: random.Random) -> int:
    """A place between two groups in the second incarnation, not at its beginning."""
    ends = [
        i + 1
        for i, entry in enumerate(entries)
        if entry.fields["inc"] == entries[-1].fields["inc"]
        and len(set(entry.fields.get("part", "1/1").split("/"))) == 1
    ]
    return dice.choice(ends[20:-20])


def test_an_incremental_run_equals_a_full_one(spark: SparkSession) -> None:
    """Two runs, the second only over what came after the first, give the tables of one."""
    first, both = [], []
    for seed, (entries, _) in HISTORIES.items():
        place = cut(entries, random.Random(seed)) + seed % 2  # which may be within a group
        old = [landed(entry, batch=1) for entry in entries[:place]]
        new = [landed(entry, batch=2) for entry in entries[place:]]
        first.append(Case(f"{seed}", old, None))
        both.append(Case(f"{seed}", old + new, None))
    then, now = landing(spark, first).localCheckpoint(), landing(spark, both).localCheckpoint()
    before, after = clean(then).localCheckpoint(), clean(now).localCheckpoint()
    position = positions(then, before, gaps(then)).localCheckpoint()
    assert not discontinuous(now, position).collect()
    since = clean(fresh(now, position)).localCheckpoint()
    brokers = broker_versions(before).where("to_ms is null")
    turns: list[tuple[Callable[..., DataFrame], tuple[DataFrame, ...], str]] = [
        (sessions, (), "open"),
        (broker_versions, (), "to_ms is null"),
        (version_rows, (brokers,), "to_ms is null"),
    ]
    for turn, more, still in turns:
        run = turn(before).localCheckpoint()
        went_on = run.where(f"not ({still})").unionByName(turn(since, run.where(still), *more))
        assert rows_of(went_on, *run.columns) == rows_of(turn(after), *run.columns), turn.__name__
    ended = {row.namespace: row for row in moved(now, since, position).collect()}
    assert {row.batch for row in ended.values()} == {2}
    ends = {f"{seed}": int(entries[-1].fields["seq"]) for seed, (entries, _) in HISTORIES.items()}
    assert {name: row.seq for name, row in ended.items()} == ends


def at_batch(batch: int, rows: Rows) -> Rows:
    return [row | {"batch": batch} for row in rows]


def newer(seq: int, inc: float = 0, at: float = 50) -> Rows:
    """The next batch: one entry."""
    return Stream(inc, seq=seq).add(at, registered("first", "c", 3)).rows(2)


OLD = Stream().add(1, registered("first", "a", 1)).add(2, registered("first", "b", 2))
BEGUN_LATER = at_batch(1, Stream(seq=9).add(1, registered("first", "a", 1)).rows())
TWO = at_batch(1, OLD.rows())
STREAM_LOST = at_batch(1, Stream().add(1, started("stream_lost"), registered("first", "a", 1)).rows())
STREAM_EMPTY = at_batch(1, Stream().add(1, started(), registered("first", "a", 1)).rows())
LOST = at_batch(0, Stream().add(1, *(registered("first", name, 1) for name in "abc")).rows())
AHEAD = at_batch(0, Stream(100).add(101, registered("first", "a", 1)).rows())
PASSED = TWO + at_batch(1, newer(3, at=102))
THREE = Stream(50).add(51, *(registered("first", name, 1) for name in "abc")).rows()
WAITING = [*at_batch(1, THREE[:2]), *at_batch(2, THREE[2:])]
AGAIN = [
    Case("nothing new", TWO, False),
    Case("the next entry", TWO + newer(3), False),
    Case("a hole", TWO + newer(4), True),
    Case("a rollback", TWO + newer(2), True),
    Case("entries that are rolled back at once", TWO + newer(3) + at_batch(3, newer(3, at=60)), True),
    Case("an entry of a lost primary lies ahead", LOST + at_batch(1, newer(2)), True),
    Case(
        "what a lost primary had is passed",
        LOST + at_batch(1, newer(2) + newer(3, at=60)) + newer(4, at=70),
        False,
    ),
    Case("a repeat", TWO + at_batch(2, OLD.rows()), True),
    Case("an incarnation", TWO + newer(1, inc=50), True),
    Case("an incarnation whose clock is behind", TWO + newer(1, inc=-50, at=-40), True),
    Case("after one whose clock is behind, the next entry", AHEAD + TWO + newer(3), True),
    Case("after one whose clock was behind, the next entry", AHEAD + PASSED + newer(4, at=103), False),
    Case("a group of an incarnation waits for its rest", TWO + WAITING[:2], False),
    Case("the rest comes", TWO + WAITING, True),
    Case("begun later, no round yet", BEGUN_LATER + newer(10), True),
    Case("begun beside tables whose stream was lost", STREAM_LOST + newer(3), True),
    Case("begun beside an empty store", STREAM_EMPTY + newer(3), False),
    Case("begun later, then a round", at_batch(1, Stream(seq=9).members(1).rows()) + newer(11), False),
]


def test_a_round_proves_nothing_where_the_stream_began_beside_tables(spark: SparkSession) -> None:
    """What held before it is known to nothing but the round."""
    cases = [
        Case(
            cause, Stream().add(1, started(cause)).add(2, registered("first", "a", 1)).members(1).rows(), None
        )
        for cause in ("stream_lost", "empty_store")
    ]
    proves = {row.namespace: row.proves for row in rounds_of(clean(landing(spark, cases))).collect()}
    assert proves == {"stream_lost": False, "empty_store": True}


@pytest.fixture(scope="module")
def from_scratch(spark: SparkSession) -> set[str]:
    events = landing(spark, AGAIN).localCheckpoint()
    old = events.where("batch <= 1")
    position = positions(old, clean(old), gaps(old)).localCheckpoint()
    return {row.namespace for row in discontinuous(events, position).collect()}


@pytest.mark.parametrize("case", AGAIN, ids=[case.id for case in AGAIN])
def test_which_namespaces_begin_from_scratch(from_scratch: set[str], case: Case) -> None:
    assert (case.id in from_scratch) == case.expected
