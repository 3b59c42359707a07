"""Many leases that end at once are held, if that is asked for; how such a hold ends."""

from collections.abc import Iterator

import pytest

from mqnamesrv.store import EmbeddedStore
from registry.errors import TopicNotFound
from registry.events.entry import Event
from registry.expiry.holds import LONGEST_MS, HoldRule, release
from registry.expiry.worker_lease import tick
from registry.members import brokers, lease_clock
from registry.options.catalogue import Options
from registry.store.connect import connect
from tests.registry.brokers import address, origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

RULE = HoldRule(longest_ms=600_000, percent=10, least=3)
TEN = tuple(f"b{number}" for number in range(10))


@pytest.fixture
def redis(each_store: EmbeddedStore) -> Iterator[Store]:
    with connect(each_store.url) as client:
        yield client


def ticked(ns: Namespace, rule: HoldRule | None = RULE) -> None:
    ns.run(tick(ns.keys, "w1", origin(), rule))


def serving(ns: Namespace, count: int = 10, rule: HoldRule | None = RULE) -> None:
    """So many brokers, under that rule."""
    ticked(ns, rule)
    for name in TEN[:count]:
        ns.register(name)
    ns.new_entries()


def lapse(ns: Namespace, *names: str, ago_ms: int = 1) -> None:
    for name in names:
        ns.lapse(name, ago_ms=ago_ms)


def answered(ns: Namespace) -> set[str]:
    try:
        return {data.broker_name for data in ns.route("T1").broker_datas}
    except TopicNotFound:
        return set()


def holds(ns: Namespace) -> list[Event]:
    """The new entries that tell of holds."""
    return [event for event in ns.new_entries() if event.kind == "hold_changed"]


def hold_of(event: Event) -> tuple[int, int]:
    after = event.json("after", dict[str, int])
    return after["from_ms"], after["until_ms"]


def passes(ns: Namespace, ms: int) -> None:
    """All that the store has noted lies so much longer back."""
    ns.rewritten = True
    for field, value in ns.store.hgetall(ns.keys.events_meta).items():
        if field in ("hold_from_ms", "hold_until_ms", "count_from_ms"):
            ns.store.hset(ns.keys.events_meta, field, int(value) - ms)
    for member, end in ns.store.zrange(ns.keys.leases, 0, -1, withscores=True):
        if end < ns.now_ms():
            ns.store.zadd(ns.keys.leases, {member: end - ms})
    for member, end in ns.store.zrange(ns.keys.lapses, 0, -1, withscores=True):
        ns.store.zadd(ns.keys.lapses, {member: end - ms})


@pytest.mark.parametrize("judge", ["route", "expire", "tick"])
def test_many_lapses_at_once_are_held_by_the_first_script_that_judges(ns: Namespace, judge: str) -> None:
    serving(ns)
    lapse(ns, *TEN[:4])
    if judge == "route":
        assert answered(ns) == set(TEN)
    if judge == "expire":
        assert ns.expire() == 0
    ticked(ns)
    (hold,) = holds(ns)
    begins, ends = hold_of(hold)
    assert (hold.cause, "before" in hold.fields) == ("mass_expiry", False)
    assert ends - begins == RULE.longest_ms + 30_000
    assert RULE.longest_ms - 1000 < ends - ns.now_ms() <= RULE.longest_ms
    assert (ns.expire(), answered(ns), ns.new_causes()) == (0, set(TEN), [])


def test_nothing_is_held_unless_asked_for(ns: Namespace) -> None:
    serving(ns, rule=None)
    lapse(ns, *TEN[:4])
    assert (ns.expire(), answered(ns)) == (4, set(TEN[4:]))


def test_a_rule_that_is_taken_back_holds_nothing(ns: Namespace) -> None:
    serving(ns)
    ticked(ns, None)
    lapse(ns, *TEN[:4])
    assert (ns.expire(), ns.store.exists(ns.keys.lapses)) == (4, 0)


@pytest.mark.parametrize(
    ("count", "lapsing", "rule", "held"),
    [
        pytest.param(4, 2, RULE, False, id="fewer than the least"),
        pytest.param(4, 3, RULE, True, id="the least"),
        pytest.param(10, 4, HoldRule(600_000, 50, 3), False, id="a smaller share"),
        pytest.param(10, 5, HoldRule(600_000, 50, 3), True, id="the share"),
        pytest.param(1, 1, HoldRule(600_000, 100, 1), True, id="all there are"),
    ],
)
def test_how_many_it_takes(ns: Namespace, count: int, lapsing: int, rule: HoldRule, held: bool) -> None:
    serving(ns, count, rule)
    lapse(ns, *TEN[:lapsing])
    assert len(answered(ns)) == (count if held else count - lapsing)


def test_lapses_that_are_recorded_already_count_for_half_a_minute(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, "b0", "b1", ago_ms=20_000)
    assert ns.expire() == 2
    lapse(ns, "b2")
    assert ns.expire() == 0
    assert (answered(ns), len(holds(ns))) == (set(TEN[2:]), 1)


def test_they_are_a_percentage_of_all_members(ns: Namespace) -> None:
    serving(ns, rule=HoldRule(600_000, 35, 3))
    lapse(ns, "b0", "b1")
    assert ns.expire() == 2
    lapse(ns, "b2")
    assert ns.expire() == 1  # 3 of 10, though of 8 that are left


def test_older_ones_do_not(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, "b0", "b1", ago_ms=31_000)
    assert ns.expire() == 2
    lapse(ns, "b2")
    assert ns.expire() == 1


def test_nor_do_members_that_came_back(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, "b0", "b1")
    assert ns.expire() == 2
    ns.register("b0")
    lapse(ns, "b2")
    assert ns.expire() == 1
    lapse(ns, "b3")
    assert ns.expire() == 0


def test_a_member_that_comes_back_is_no_lapse(ns: Namespace) -> None:
    serving(ns)
    for name in TEN[:3]:
        lapse(ns, name)
        ns.heartbeat(name)
    lapse(ns, "b3")
    assert ns.expire() == 1


def test_those_that_lapse_later_are_held_too(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:3])
    ticked(ns)
    lapse(ns, *TEN[3:])
    ticked(ns)
    assert (answered(ns), ns.expire(), len(holds(ns))) == (set(TEN), 0, 1)


def test_held_members_are_shown_as_held(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:3])
    ticked(ns)
    states = [broker.members[0].lease.state for broker in ns.run(brokers(ns.keys, TEN[:4]))]
    assert states == ["held", "held", "held", "living"]


def test_it_ends_when_nine_in_ten_are_back(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:3])
    ticked(ns)
    lapse(ns, *TEN[3:])
    ticked(ns)
    for name in TEN[:8]:
        ns.heartbeat(name)
        ticked(ns)
    (set_,) = holds(ns)
    ns.next_ms()
    ns.heartbeat("b8")
    ticked(ns)
    (released,) = holds(ns)
    assert (released.cause, released.get("before")) == ("released", set_.get("after"))
    begins, ends = hold_of(released)
    assert (begins, answered(ns)) == (hold_of(set_)[0], set(TEN[:9]))
    ns.new_entries()
    assert ns.expire() == 1
    (removed,) = ns.new_entries()
    assert removed.number("effective_ms") == ends > removed.number("lease_ms")


def test_members_that_leave_are_not_waited_for(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:3])
    ticked(ns)
    for name in TEN[:3]:
        ns.unregister(name)
    ns.new_entries()
    ticked(ns)
    assert [event.cause for event in holds(ns)] == ["released"]


def test_an_operator_ends_it_and_it_is_not_set_again(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:4])
    ticked(ns)
    ns.new_entries()
    event_id = ns.run(release(ns.keys, origin()))
    (released,) = holds(ns)
    assert (str(released.id), released.cause) == (event_id, "released")
    assert (answered(ns), ns.expire()) == (set(TEN[4:]), 4)
    assert ns.run(release(ns.keys, origin())) == ""


def test_an_operator_ends_the_hold_of_an_outage_too(ns: Namespace) -> None:
    serving(ns)
    ns.silent_for(20_000)
    lapse(ns, *TEN)
    ticked(ns)
    assert ns.run(release(ns.keys, origin()))
    assert [event.cause for event in holds(ns)] == ["outage", "released"]
    assert (answered(ns), ns.expire()) == (set(), 10)


def test_without_a_hold_there_is_nothing_to_end(ns: Namespace) -> None:
    serving(ns)
    assert (ns.run(release(ns.keys, origin())), ns.new_causes()) == ("", [])


def test_new_lapses_after_the_end_are_held_again(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:3])
    ticked(ns)
    ns.run(release(ns.keys, origin()))
    ns.expire()
    passes(ns, 1000)
    lapse(ns, *TEN[3:6])
    assert (ns.expire(), answered(ns)) == (0, set(TEN[3:]))


def test_after_its_end_a_hold_keeps_no_member(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, *TEN[:3])
    ticked(ns)
    lapse(ns, *TEN[3:6])
    passes(ns, RULE.longest_ms + 10)
    ns.new_entries()
    assert answered(ns) == set(TEN[6:])
    assert ns.expire() == 6
    removed = [event.number("effective_ms") for event in ns.new_entries()]
    assert removed == [int(ns.store.hget(ns.keys.events_meta, "hold_until_ms") or 0)] * 6
    ticked(ns)
    assert holds(ns) == []


def test_what_an_earlier_hold_kept_says_nothing_of_the_next(ns: Namespace) -> None:
    rule = HoldRule(600_000, 1, 1)
    serving(ns, rule=rule)
    lapse(ns, *TEN)
    ticked(ns, rule)
    passes(ns, rule.longest_ms + 10)
    assert ns.expire() == 10
    for name in TEN:
        ns.register(name)
    lapse(ns, "b0")
    ns.next_ms()
    ticked(ns, rule)
    ticked(ns, rule)
    assert [event.cause for event in holds(ns)] == ["mass_expiry", "mass_expiry"]
    passes(ns, rule.longest_ms + 10)
    assert ns.expire() == 1
    ns.silent_for(6000)
    ticked(ns, rule)
    ticked(ns, rule)
    assert [event.cause for event in holds(ns)] == ["outage"]


def test_a_member_kept_by_an_outage_without_return_lapses_at_once_and_is_held(ns: Namespace) -> None:
    serving(ns)
    ns.silent_for(60_000)
    lapse(ns, *TEN, ago_ms=50_000)
    ticked(ns)
    passes(ns, 60_010)
    ticked(ns)
    assert [event.cause for event in holds(ns)] == ["outage", "mass_expiry"]
    assert (answered(ns), ns.expire()) == (set(TEN), 0)


def test_an_outage_meanwhile_prolongs_it(ns: Namespace) -> None:
    serving(ns, rule=HoldRule(10_000, 10, 3))
    lapse(ns, *TEN[:3])
    ticked(ns, HoldRule(10_000, 10, 3))
    ns.silent_for(6000)
    ticked(ns, HoldRule(10_000, 10, 3))
    first, second = holds(ns)
    assert (second.cause, second.get("before")) == ("outage", first.get("after"))
    assert hold_of(second)[0] == hold_of(first)[0]
    assert hold_of(second)[1] > hold_of(first)[1]


def test_what_is_noted_of_lapses_goes_by_itself(ns: Namespace) -> None:
    serving(ns)
    lapse(ns, "b0")
    ns.expire()
    assert 0 < ns.store.pttl(ns.keys.lapses) <= 30_000
    passes(ns, 31_000)
    lapse(ns, "b1")
    ns.expire()
    assert ns.store.zrange(ns.keys.lapses, 0, -1) == [f"c1:{address('b1')}"]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        pytest.param(Options(), None, id="off by default"),
        pytest.param(Options(expiry_hold_millis=5000), HoldRule(5000, 10, 3), id="defaults"),
        pytest.param(Options(expiry_hold_millis=2**62), HoldRule(LONGEST_MS, 10, 3), id="a year at most"),
        pytest.param(
            Options(expiry_hold_millis=5000, expiry_hold_share=40, expiry_hold_least=7),
            HoldRule(5000, 40, 7),
            id="all",
        ),
    ],
)
def test_the_rule_of_options(options: Options, rule: HoldRule | None) -> None:
    assert HoldRule.of(options) == rule


def test_the_longest_hold_is_a_time_like_others(ns: Namespace) -> None:
    serving(ns, rule=HoldRule(LONGEST_MS, 10, 3))
    lapse(ns, *TEN[:3])
    ticked(ns, HoldRule(LONGEST_MS, 10, 3))
    (hold,) = holds(ns)
    until = ns.run(lease_clock(ns.keys)).hold_until_ms
    assert until == hold_of(hold)[1]
    (broker,) = ns.run(brokers(ns.keys, TEN[:1]))
    assert broker.members[0].lease.kept_until_ms == until
