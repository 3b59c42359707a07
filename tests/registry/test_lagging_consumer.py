"""Consumers that hold entries back but lost some all the same: the trimmer sees it, and has a round begun for them."""

from collections.abc import Callable

import pytest

from registry.events.consumers import SILENT_MS
from registry.events.entry import FIRST, Event, EventId
from registry.events.replay import UNKNOWN, replay
from registry.events.trim import ROUND_EVERY_MS, Trimmed, trim
from registry.plans import as_json
from tests.registry.brokers import origin
from tests.registry.checkpoints import asked, slices
from tests.registry.namespace import Namespace
from tests.registry.stored import assert_replays

PLENTY = 1 << 30


@pytest.fixture(autouse=True)
def cut(ns: Namespace) -> None:
    """These streams are no longer all there."""
    ns.rewritten = True


def trimmed(ns: Namespace, max_bytes: int = PLENTY) -> Trimmed:
    return ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=max_bytes))


def hold(ns: Namespace, last: Event | None, *, silent_ms: int = 0, holds: bool = True, seq: int = 0) -> None:
    """A consumer says that all up to this entry is safe with it."""
    reported = {
        "id": str(last.id if last else FIRST),
        "seq": seq or (last.number("seq") if last else 0),
        "at_ms": ns.now_ms() - silent_ms,
        "hold": holds,
    }
    ns.store.hset(ns.keys.events_consumers, "pipeline", as_json(reported))


def fill(ns: Namespace, count: int = 4) -> list[Event]:
    """So many brokers: the start of the stream, and two entries each."""
    for number in range(count):
        ns.register(f"b{number}", mappings=())
    return ns.entries()


def leave(ns: Namespace, count: int) -> None:
    """Only so many entries are still there."""
    ns.store.xtrim(ns.keys.events, maxlen=count, approximate=False)


def is_asked(ns: Namespace) -> bool:
    return bool(ns.store.hexists(ns.keys.events_asked, "gap"))


def test_a_consumer_behind_the_cap_gets_a_round(ns: Namespace) -> None:
    hold(ns, fill(ns, 300)[100])
    used = int(ns.store.memory_usage(ns.keys.events))
    done = trimmed(ns, used // 2)
    assert done.capped > 200
    assert (done.lagging, is_asked(ns)) == (1, True)
    trimmed(ns)  # the cap has place for a round
    assert ns.run(slices(ns.keys)).ended == 1
    events = ns.entries()
    assert {event.cause for event in events if event.kind == "checkpoint"} == {"gap"}
    assert_replays(ns.store, ns.keys, replay(UNKNOWN, events))
    assert (trimmed(ns).lagging, is_asked(ns)) == (0, False)  # it is ahead of it
    hold(ns, events[-1])
    assert trimmed(ns).lagging == 0


def seen_up_to(place: int) -> Callable[[Namespace], None]:
    def consumer(ns: Namespace) -> None:
        hold(ns, fill(ns)[place])

    return consumer


def new(ns: Namespace) -> None:
    fill(ns)
    hold(ns, None)


def silent(ns: Namespace) -> None:
    hold(ns, fill(ns)[0], silent_ms=SILENT_MS + 1000)


def not_retaining(ns: Namespace) -> None:
    hold(ns, fill(ns)[0], holds=False)


def no_consumer(ns: Namespace) -> None:
    fill(ns)


@pytest.mark.parametrize(
    ("consumer", "left", "lagging"),
    [
        pytest.param(seen_up_to(3), 4, 1, id="entries behind its own are gone"),
        pytest.param(seen_up_to(4), 4, 0, id="the next entry is the first"),
        pytest.param(seen_up_to(7), 4, 0, id="its own entry is there"),
        pytest.param(seen_up_to(7), 0, 1, id="all are gone"),
        pytest.param(seen_up_to(8), 0, 0, id="all are gone, and it has seen all"),
        pytest.param(new, 4, 1, id="a new one, of a stream that was trimmed"),
        pytest.param(new, 9, 0, id="a new one"),
        pytest.param(silent, 4, 0, id="one that is silent for a day"),
        pytest.param(not_retaining, 4, 0, id="one that trimming does not wait for"),
        pytest.param(no_consumer, 4, 0, id="no_consumer"),
    ],
)
def test_consumers_that_lack_entries(
    ns: Namespace, consumer: Callable[[Namespace], None], left: int, lagging: int
) -> None:
    consumer(ns)
    leave(ns, left)
    assert trimmed(ns).lagging == lagging
    assert is_asked(ns) == bool(lagging)


@pytest.mark.parametrize(("left", "lagging"), [(2, 1), (3, 0)])
def test_entries_of_another_incarnation(ns: Namespace, left: int, lagging: int) -> None:
    hold(ns, fill(ns)[-1])
    ns.store.delete(ns.keys.events)
    ns.next_ms()
    ns.register("b9")
    assert len(ns.entries()) == 3
    leave(ns, left)
    assert trimmed(ns).lagging == lagging


@pytest.mark.parametrize("place", [-1, 10])
def test_an_entry_that_never_happened(ns: Namespace, place: int) -> None:
    """A failover lost it; another may have its place by now. A round before it does not help."""
    fill(ns)
    asked(ns)
    ns.run(slices(ns.keys))
    last = fill(ns, 8)[place]
    hold(ns, Event(EventId(last.id.ms, 10 * last.id.number + 7), last.fields))
    assert (trimmed(ns).lagging, is_asked(ns)) == (1, True)
    hold(ns, last, seq=99)
    assert trimmed(ns).lagging == 1


def test_rounds_that_are_cut_off_themselves_do_not_come_all_the_time(ns: Namespace) -> None:
    hold(ns, fill(ns)[0])
    leave(ns, 4)
    trimmed(ns)
    ns.run(slices(ns.keys))
    leave(ns, 2)
    assert (trimmed(ns).lagging, is_asked(ns)) == (1, False)
    long_ago = ns.now_ms() - ROUND_EVERY_MS
    ns.store.hset(ns.keys.events_round, "begun", f"{long_ago}-0")
    assert (trimmed(ns).lagging, is_asked(ns)) == (1, True)


def test_a_round_that_others_asked_for_does_not_count_behind_its_end(ns: Namespace) -> None:
    fill(ns)
    asked(ns)
    ns.run(slices(ns.keys))
    hold(ns, ns.entries()[-1])
    fill(ns, 8)
    leave(ns, 4)
    assert (trimmed(ns).lagging, is_asked(ns)) == (1, True)
