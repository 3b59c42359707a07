"""The position up to which entries were logged and counted, and what follows it."""

import pytest
import redis as redis_py

from registry.events.observed import OBSERVER, READ, Claim, Position, Unobserved, read_next, write_position
from registry.kv import put
from registry.repair.state import claim, release
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

OURS, OTHERS = Claim("ours", 30_000), Claim("others", 30_000)


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    """A namespace of which OURS has the claim."""
    namespace = Namespace(redis)
    assert namespace.run(claim(namespace.keys, OURS.walker, origin()))
    return namespace


def change(ns: Namespace, *keys: str) -> None:
    for key in keys:
        ns.run(put(ns.keys, "n", key, "v", origin()))


def unobserved(ns: Namespace, reached: Position | None = None) -> Unobserved:
    read = ns.run(read_next(ns.keys, OURS, reached))
    assert read is not None
    return read


def observe(ns: Namespace) -> list[str]:
    """Return the keys of KV of the next entries, and write the position behind them."""
    read = unobserved(ns)
    assert ns.run(write_position(ns.keys, OURS, read.position.behind(read.events)[0]))
    return [event.get("key") for event in read.events if event.get("key")]


def test_entries_are_read_once(ns: Namespace) -> None:
    change(ns, "a", "b")
    assert observe(ns) == ["a", "b"]
    change(ns, "c")
    assert observe(ns) == ["c"]
    assert observe(ns) == []


def test_a_process_goes_on_where_it_or_another_one_is_further(ns: Namespace) -> None:
    change(ns, "a")
    ours, _ = (read := unobserved(ns)).position.behind(read.events)
    change(ns, "b")
    assert [event.get("key") for event in unobserved(ns, ours).events] == ["b"]
    observe(ns)
    change(ns, "c")
    assert [event.get("key") for event in unobserved(ns, ours).events] == ["c"]


def test_without_the_claim_nothing_is_read_or_written(ns: Namespace) -> None:
    change(ns, "a")
    assert ns.run(read_next(ns.keys, OTHERS, None)) is None
    assert not ns.run(write_position(ns.keys, OTHERS, Position("5-0")))
    assert not ns.store.hexists(ns.keys.events_consumers, OBSERVER)


def test_a_claim_that_has_ended_is_not_renewed(ns: Namespace) -> None:
    ns.store.delete(ns.keys.repair_walker)
    assert ns.run(read_next(ns.keys, OURS, None)) is None
    assert not ns.store.exists(ns.keys.repair_walker)


def test_a_read_renews_the_claim(ns: Namespace) -> None:
    ns.store.pexpire(ns.keys.repair_walker, 1_000)
    unobserved(ns)
    assert ns.store.pttl(ns.keys.repair_walker) > 29_000


def test_only_its_own_claim_is_released(ns: Namespace) -> None:
    ns.run(release(ns.keys, OTHERS.walker))
    assert ns.store.get(ns.keys.repair_walker) == OURS.walker
    ns.run(release(ns.keys, OURS.walker))
    assert not ns.store.exists(ns.keys.repair_walker)


@pytest.mark.parametrize("stored", [None, "nojson", '{"id":"-1-0"}', '{"id":"soon"}'])
def test_without_a_position_what_is_new_is_read(ns: Namespace, stored: str | None) -> None:
    change(ns, "a")
    entries = ns.store.xrange(ns.keys.events)
    old = int(entries[0][0].partition("-")[0]) - 40_000
    ns.store.delete(ns.keys.events)
    ns.store.xadd(ns.keys.events, {**entries[0][1], "key": "old"}, id=f"{old}-0")
    if stored is not None:
        ns.store.hset(ns.keys.events_consumers, OBSERVER, stored)
    assert observe(ns) == []
    change(ns, "b")
    assert observe(ns) == ["b"]


def test_what_was_observed_last_comes_along_at_first(ns: Namespace) -> None:
    change(ns, "a", "b")
    observe(ns)
    change(ns, "c")
    first = unobserved(ns)
    assert [event.get("key") for event in first.observed][:2] == ["b", "a"]
    assert unobserved(ns, first.position).observed == ()


def test_one_read_is_bounded(ns: Namespace) -> None:
    change(ns, *(f"k{n}" for n in range(READ + 5)))
    first = unobserved(ns)
    assert (len(first.events), first.more) == (READ, True)


def test_entries_that_were_trimmed_are_counted(ns: Namespace) -> None:
    change(ns, "a")
    observe(ns)
    change(ns, *"bcdef")
    ns.store.xtrim(ns.keys.events, maxlen=2, approximate=False)
    read = unobserved(ns)
    assert [event.get("key") for event in read.events] == ["e", "f"]
    position, gone = read.position.behind(read.events)
    assert gone == 3
    assert position.position == read.events[-1].id
    assert read.position.behind(read.events[:1])[0].behind(read.events[1:]) == (position, 0)


def test_of_a_new_incarnation_entries_count_from_its_first(ns: Namespace) -> None:
    ns.run(write_position(ns.keys, OURS, Position("1767225600000-4", 9, inc="1767225500000")))
    change(ns, "b", "c", "d")
    read = unobserved(ns)
    assert read.position.behind(read.events)[1] == 0
    ns.store.xtrim(ns.keys.events, maxlen=2, approximate=False)
    read = unobserved(ns)
    assert read.position.behind(read.events)[1] == 2  # the start of the stream, and b


def test_a_stream_that_lost_its_newest_entries_is_gone_on_with(ns: Namespace) -> None:
    change(ns, "a", "b")
    observe(ns)
    newest = ns.store.xrevrange(ns.keys.events, count=1)
    ns.store.xdel(ns.keys.events, newest[0][0])
    read = unobserved(ns)
    assert (read.went_back, read.more, read.events) == (True, True, ())
    assert ns.run(write_position(ns.keys, OURS, read.position))
    assert unobserved(ns).went_back is False


def test_another_stream_whose_ids_are_lower_is_read_from_its_start(ns: Namespace) -> None:
    change(ns, "a")
    observe(ns)
    entries = [fields for _, fields in ns.store.xrange(ns.keys.events)]
    ns.store.delete(ns.keys.events)
    for place, fields in enumerate(entries, 1):
        ns.store.xadd(ns.keys.events, {**fields, "inc": "7"}, id=f"{place}-0")
    read = unobserved(ns)
    assert (read.went_back, read.position.id, read.position.inc) == (True, "0-0", "7")
    assert ns.run(write_position(ns.keys, OURS, read.position))
    assert observe(ns) == ["a"]


def test_an_entry_without_a_number_is_passed(ns: Namespace) -> None:
    change(ns, "a")
    observe(ns)
    ns.store.xadd(ns.keys.events, {"kind": "kv_changed", "key": "by hand", "seq": "x"})
    change(ns, "b")
    read = unobserved(ns)
    position, gone = read.position.behind(read.events[:1])
    assert (position.seq, position.inc, gone) == (read.position.seq, read.position.inc, 0)
    assert position.behind(read.events[1:])[1] == 0
    assert observe(ns) == ["by hand", "b"]
