"""Leases decide which members are listed; a lapse is recorded once; a hold keeps leases that could not be renewed."""

from collections.abc import Callable

import pytest
from redis.exceptions import ResponseError

from registry.clusters import cluster_info, member_group
from registry.errors import TopicNotFound
from registry.expiry.worker_lease import SERVICE_IDLE_MS, tick
from registry.members import lease_clock
from registry.ownership import Claimant
from registry.routes import read_route
from rocketmq_remoting.data_version import DataVersion
from tests.registry.brokers import address, origin
from tests.registry.namespace import Namespace

A0, A1 = address("b1"), address("b1", 1)
MEMBER = f"c1:{A0}"


def away(ns: Namespace, for_ms: int = 20_000) -> int:
    """The store was away for so long: no worker could note that leases can be renewed. Returns the last tick."""
    return ns.silent_for(for_ms)


def lease(ns: Namespace) -> int:
    return int(ns.store.zscore(ns.keys.leases, MEMBER))


def end_hold_at(ns: Namespace, until_ms: int) -> None:
    """Rewrites the hold in the stream."""
    ns.rewritten = True
    ns.store.hset(ns.keys.events_meta, "hold_until_ms", until_ms)


def answered(ns: Namespace) -> set[str]:
    """Return the members that a route, the cluster info and a member group agree on."""
    try:
        route = set(ns.route("T1").broker_datas[0].broker_addrs.values())
    except TopicNotFound:
        route = set()
    info = ns.run(cluster_info(ns.keys)).broker_addr_table
    listed = set(info["b1"].broker_addrs.values()) if "b1" in info else set()
    assert route == listed == set(ns.run(member_group(ns.keys, "c1", "b1")).broker_addrs.values())
    return route


def test_a_lapsed_member_is_not_listed_before_its_lapse_is_recorded(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1)
    before = answered(ns)
    ns.lapse("b1", 1)
    between = answered(ns)
    ns.lapse()
    assert (before, between, answered(ns)) == ({A0, A1}, {A0}, set())


def test_a_route_names_the_brokers_it_leaves_out(ns: Namespace) -> None:
    ns.register()
    ns.lapse()
    stored = ns.run(read_route(ns.keys, "T1"))
    assert (stored.brokers, stored.names) == ((), frozenset({"b1"}))


def test_a_heartbeat_renews_the_lease(ns: Namespace) -> None:
    ns.register(timeout_ms=30_000)
    ns.store.zincrby(ns.keys.leases, -10_000, MEMBER)
    accepted = ns.heartbeat()
    assert accepted.version == DataVersion(0, 1_700_000_000_000, 1)
    assert 29_000 < ns.store.zscore(ns.keys.leases, MEMBER) - ns.now_ms() <= 30_000
    assert 29_000 < ns.store.pttl(ns.keys.alive(MEMBER)) <= 30_000


@pytest.mark.parametrize(
    "renew",
    [
        pytest.param(lambda ns: ns.heartbeat(), id="heartbeat"),
        pytest.param(lambda ns: ns.heartbeat(by=Claimant("host:127.0.0.1", guard=True)), id="guarded"),
        pytest.param(lambda ns: ns.register(stamp=1), id="unchanged registration"),
    ],
)
def test_the_countdown_is_written_once_in_an_eighth_of_the_timeout(
    ns: Namespace, renew: Callable[[Namespace], object]
) -> None:
    eighth = 120_000 // 8
    ns.register()
    dues = []
    for ago in (0, 0, 1_000, eighth - 1, eighth, 3 * eighth):
        ns.store.zincrby(ns.keys.leases, -ago, MEMBER)  # as if it had been renewed so long ago
        before, countdown = lease(ns), ns.store.get(ns.keys.alive(MEMBER))
        ns.next_ms()
        renew(ns)
        now = lease(ns)
        assert now > before
        dues.append(now // eighth != before // eighth)
        assert ns.store.get(ns.keys.alive(MEMBER)) == (str(now) if dues[-1] else countdown)
    assert not all(dues)
    assert dues[-2:] == [True, True]
    ns.check()


def test_a_heartbeat_registers_no_member(ns: Namespace) -> None:
    assert (ns.heartbeat().version, ns.new_causes(), ns.store.keys("*")) == (None, [], [])


def test_nothing_brings_back_a_removed_member(ns: Namespace) -> None:
    ns.register()
    ns.unregister()
    assert (ns.heartbeat().version, answered(ns)) == (None, set())


@pytest.mark.parametrize("way", ["heartbeat", "registration"])
def test_a_member_comes_back_under_the_same_epoch(ns: Namespace, way: str) -> None:
    ns.register()
    epoch = ns.store.hget(ns.keys.broker("b1"), "epoch")
    ns.lapse(ago_ms=700)
    ns.new_entries()
    if way == "heartbeat":
        assert ns.heartbeat().version == DataVersion(0, 1_700_000_000_000, 1)
    else:
        ns.register()
    removed, reinstated = ns.new_entries()
    assert (removed.cause, reinstated.cause) == ("expired", "revive")
    assert removed.number("effective_ms") == removed.number("lease_ms") < reinstated.id.ms
    assert reinstated.number("topics") == 2
    assert (ns.store.hget(ns.keys.broker("b1"), "epoch"), answered(ns)) == (epoch, {A0})


def test_a_newcomer_to_an_emptied_broker_gets_a_new_epoch(ns: Namespace) -> None:
    ns.register(topics=("T1", "T2", "T3"))
    ns.lapse()
    ns.new_entries()
    ns.register(at=A1)
    assert ns.new_causes() == ["broker_removed expired", "broker_registered first", "topics_changed register"]
    assert set(ns.topics()) == ns.store.smembers(ns.keys.topics) == {"T1", "T2"}


def test_a_lapsed_member_that_comes_under_another_id_joins(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1)
    ns.lapse("b1", 1)
    ns.new_entries()
    ns.register("b1", 2, at=A1)
    assert ns.new_causes() == ["broker_removed expired", "broker_registered join"]


def test_a_heartbeat_reinstates_every_name_of_an_address(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=A0)
    ns.lapse()
    ns.new_entries()
    ns.heartbeat()
    assert sorted(ns.new_causes()) == [*["broker_registered revive"] * 2, *["broker_removed expired"] * 2]
    assert (ns.addrs(), ns.addrs("b2")) == ({0: A0}, {0: A0})


def test_the_first_write_of_a_member_records_the_others_lapses(ns: Namespace) -> None:
    for number in range(3):
        ns.register("b1", number)
    ns.lapse("b1", 1)
    ns.lapse("b1", 2)
    ns.new_entries()
    ns.unregister()
    assert ns.new_causes() == [*["broker_removed expired"] * 2, "broker_removed unregistered"]


@pytest.mark.parametrize("noticed_by", ["registration", "heartbeat"])
def test_a_group_without_master_loses_its_write_bit_at_once(ns: Namespace, noticed_by: str) -> None:
    ns.register(acting=True)
    ns.register("b1", 1, acting=True)
    ns.lapse()
    if noticed_by == "heartbeat":
        ns.lapse("b1", 1)
        ns.heartbeat("b1", 1)
    else:
        ns.register("b1", 1, acting=True)
    assert set(ns.topics().values()) == {"8,8,4,0"}


def test_a_worker_that_does_not_follow_the_stream_says_so_once_it_had_the_time(ns: Namespace) -> None:
    ns.run(tick(ns.keys, "w1", origin(), follows=False))
    assert not ns.run(lease_clock(ns.keys)).unfollowed
    ns.store.hset(ns.keys.events_meta, "follow_ms", ns.now_ms() - 6000)
    ns.run(tick(ns.keys, "w1", origin(), follows=False))
    assert ns.run(lease_clock(ns.keys)).unfollowed
    ns.tick()
    assert not ns.run(lease_clock(ns.keys)).unfollowed


def test_of_workers_the_one_that_is_furthest_behind_is_noted(ns: Namespace) -> None:
    def behind(worker: str, ms: int) -> int | None:
        ns.run(tick(ns.keys, worker, origin(), behind_ms=ms))
        return ns.run(lease_clock(ns.keys)).behind_now_ms

    assert [behind("w1", 0), behind("w2", 7_000), behind("w1", 10), behind("w2", 8_000)] == [
        0,
        7000,
        7000,
        8000,
    ]
    ns.store.hincrby(ns.keys.events_meta, "behind_at_ms", -4_000)
    assert behind("w1", 10) == 10
    ns.store.hincrby(ns.keys.events_meta, "behind_at_ms", -6_000)
    assert ns.run(lease_clock(ns.keys)).behind_now_ms is None


def test_what_could_not_be_renewed_is_held(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    tick_ms = away(ns)
    ns.lapse(ago_ms=2000)
    ns.new_entries()
    assert answered(ns) == {A0}
    assert ns.expire() == 0
    (hold,) = ns.new_entries()
    after = hold.json("after", dict[str, int])
    assert (hold.kind, hold.cause, after["from_ms"]) == ("hold_changed", "outage", tick_ms)
    assert 59_000 < after["until_ms"] - ns.now_ms() <= 60_000
    assert (ns.expire(), ns.new_causes(), answered(ns)) == (0, [], {A0})


def test_ticks_that_fail_on_their_way_hold_no_leases(ns: Namespace) -> None:
    """Leases are renewed meanwhile; readiness tells of such ticks."""
    ns.tick()
    ns.register()
    ns.store.set(ns.keys.workers, "damaged")
    with pytest.raises(ResponseError):
        ns.tick()
    ns.store.hset(ns.keys.events_meta, "tick_ms", ns.now_ms() - 20_000)  # it has gone on for so long
    ns.lapse(ago_ms=2000)
    assert (answered(ns), ns.expire()) == (set(), 1)
    assert "hold_changed" not in [entry.kind for entry in ns.new_entries()]
    assert ns.run(lease_clock(ns.keys)).late


def test_a_tick_that_fails_on_its_way_keeps_the_hold_that_was_due(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns)
    ns.lapse(ago_ms=2000)
    ns.store.set(ns.keys.workers, "damaged")
    with pytest.raises(ResponseError):
        ns.tick()
    until = str(int(ns.store.hget(ns.keys.events_meta, "hold_until_ms") or 0) - 10_000)
    end_hold_at(ns, int(until))  # ten seconds of such ticks later
    for _ in range(2):
        ns.store.hset(ns.keys.events_meta, "tick_ms", ns.now_ms() - 20_000)
        with pytest.raises(ResponseError):
            ns.tick()
    assert ns.store.hget(ns.keys.events_meta, "hold_until_ms") == until
    assert (answered(ns), ns.expire()) == ({A0}, 0)


@pytest.mark.parametrize("junk", ["abc", "", "nan", "9" * 40])
@pytest.mark.parametrize(
    "field",
    [
        *("tick_ms", "renew_ms", "started_ms", "follow_ms", "back_ms", "back_at_ms"),
        *("behind_ms", "behind_at_ms"),
        *("hold_from_ms", "hold_until_ms", "hold_members", "hold_rule", "count_from_ms"),
    ],
)
def test_a_damaged_time_of_the_leases_is_as_absent(ns: Namespace, field: str, junk: str) -> None:
    ns.rewritten = True
    ns.register()
    ns.tick()
    ns.store.hset(ns.keys.events_meta, mapping={"hold_from_ms": ns.now_ms(), "hold_until_ms": ns.now_ms()})
    ns.store.hset(ns.keys.events_meta, field, junk)
    ns.register("b2")
    assert ns.run(lease_clock(ns.keys)).now_ms
    assert answered(ns) == {A0}
    ns.tick()
    assert not ns.run(lease_clock(ns.keys)).late


@pytest.mark.parametrize("field", ["hold_from_ms", "hold_until_ms"])
def test_half_a_hold_is_none(ns: Namespace, field: str) -> None:
    ns.rewritten = True
    ns.register()
    ns.store.hset(ns.keys.events_meta, mapping={field: 1, "hold_members": 3})
    ns.tick()
    assert answered(ns) == {A0}


def test_a_hold_does_not_say_that_a_worker_ticked(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns)
    ns.expire()
    assert ns.run(lease_clock(ns.keys)).late


def test_what_had_lapsed_before_the_outage_is_not(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns, 10_000)
    ns.lapse(ago_ms=11_000)
    assert answered(ns) == set()
    assert ns.expire() == 1


def test_the_end_of_a_hold_is_the_end_of_the_lease(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns)
    ns.lapse(ago_ms=9000)
    ns.tick()
    until = ns.now_ms() - 10
    end_hold_at(ns, until)
    assert answered(ns) == set()
    ns.new_entries()
    assert ns.expire() == 1
    assert ns.new_entries()[0].number("effective_ms") == until


def test_a_held_member_with_a_heartbeat_has_never_left(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns)
    ns.lapse(ago_ms=2000)
    ns.tick()
    ns.new_entries()
    ns.heartbeat()
    ns.register()
    assert ns.new_causes() == []


def test_a_second_outage_prolongs_the_hold(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns)
    ns.tick()
    away(ns, 6000)
    end_hold_at(ns, ns.now_ms() + 40_000)
    ns.tick()
    first, second = (event for event in ns.new_entries() if event.kind == "hold_changed")
    after, before = first.json("after", dict[str, int]), second.json("before", dict[str, int])
    assert before["from_ms"] == after["from_ms"] == second.json("after", dict[str, int])["from_ms"]
    assert second.json("after", dict[str, int])["until_ms"] > ns.now_ms() + 59_000


def test_an_outage_long_after_a_hold_holds_from_its_own_beginning(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns)
    ns.tick()
    end_hold_at(ns, ns.now_ms() - 50_000)
    tick_ms = away(ns)
    ns.tick()
    assert ns.store.hget(ns.keys.events_meta, "hold_from_ms") == str(tick_ms)


def test_a_quiet_second_is_no_outage(ns: Namespace) -> None:
    ns.tick()
    ns.register()
    away(ns, 4000)
    ns.new_entries()
    ns.tick()
    assert ns.new_causes() == []


def test_the_service_is_as_old_as_its_first_tick_after_a_pause(ns: Namespace) -> None:
    started = [ns.tick("w1").started_ms, ns.tick("w2").started_ms]
    ns.store.hincrby(ns.keys.events_meta, "started_ms", -SERVICE_IDLE_MS)
    away(ns, SERVICE_IDLE_MS + 1)
    ns.next_ms()
    started.append(ns.tick("w1").started_ms)
    assert started[0] == started[1] < started[2]


def test_a_tick_returns_overdue_members_and_the_next_end(ns: Namespace) -> None:
    for name in ("b1", "b2", "b3"):
        ns.register(name)
    ns.lapse("b1", ago_ms=5)
    ns.lapse("b2", ago_ms=-1000)
    tick = ns.tick()
    end = int(ns.store.zscore(ns.keys.leases, MEMBER))
    assert tick.overdue == {MEMBER: end}
    assert tick.next_end_ms == int(ns.store.zscore(ns.keys.leases, f"c1:{address('b2')}"))


def test_workers_that_stopped_ticking_are_dropped(ns: Namespace) -> None:
    ns.store.zadd(ns.keys.workers, {"dead": ns.now_ms() - 61_000, "late": ns.now_ms() - 10_000})
    ns.tick("w1")
    assert ns.store.zrange(ns.keys.workers, 0, -1) == ["late", "w1"]
