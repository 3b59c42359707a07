"""The clock of Redis goes back by an hour: what was noted by the clock before is as if noted an hour ahead."""

from math import inf

from registry.keys import member_key
from registry.members import lease_clock
from registry.removal import expire
from registry.repair.walk import Walk
from tests.registry.brokers import address, origin
from tests.registry.namespace import Namespace

HOUR = 3_600_000


def clock_back(ns: Namespace) -> None:
    """Move all that is stored an hour ahead."""
    meta = ns.store.hgetall(ns.keys.events_meta)
    for field in (
        "renew_ms",
        "tick_ms",
        "started_ms",
        "follow_ms",
        "hold_from_ms",
        "hold_until_ms",
        "count_from_ms",
    ):
        if field in meta:
            ns.store.hset(ns.keys.events_meta, field, int(meta[field]) + HOUR)
    for key in (ns.keys.leases, ns.keys.workers):
        for member in ns.store.zrange(key, 0, -1):
            ns.store.zincrby(key, HOUR, member)
    for member in ns.store.zrange(ns.keys.leases, 0, -1):
        end = int(ns.store.zscore(ns.keys.leases, member))
        ns.store.set(ns.keys.alive(member), end, pxat=end)


def outage(ns: Namespace) -> None:
    """No worker ticked for ten seconds."""
    for field in ("renew_ms", "tick_ms"):
        ns.store.hincrby(ns.keys.events_meta, field, -10_000)


def test_a_tick_notices_it_once(ns: Namespace) -> None:
    ns.register()
    assert ns.tick().back_ms == 0
    clock_back(ns)
    seen = ns.tick("w2")
    assert HOUR - 5_000 < seen.back_ms <= HOUR
    clock = ns.run(lease_clock(ns.keys))
    assert clock.back_ms == seen.back_ms
    assert clock.back_at_ms == seen.now_ms
    assert ns.tick("w2").back_ms == 0
    assert ns.run(lease_clock(ns.keys)).back_at_ms == seen.now_ms


def test_a_clock_that_is_slowed_down_is_no_finding(ns: Namespace) -> None:
    ns.tick()
    ns.store.hincrby(ns.keys.events_meta, "renew_ms", 500)
    assert ns.tick().back_ms == 0


def test_the_service_is_as_old_as_it_was(ns: Namespace) -> None:
    ns.tick()
    ns.store.hincrby(ns.keys.events_meta, "started_ms", -100_000)
    clock_back(ns)
    ns.tick()
    age_s = ns.run(lease_clock(ns.keys)).service_age_s
    assert age_s is not None
    assert 99 < age_s < 200


def test_an_outage_behind_it_is_held(ns: Namespace) -> None:
    """The hold before it would seem to last for an hour, and keep another from leases that end now."""
    ns.register(timeout_ms=120_000)
    ns.tick()
    outage(ns)
    ns.tick()  # a hold of 60 s
    clock_back(ns)
    ns.tick()
    walked(ns)
    hold_until_ms = ns.run(lease_clock(ns.keys)).hold_until_ms
    assert hold_until_ms is not None
    assert hold_until_ms < ns.now_ms() + 60_000
    ns.store.hincrby(ns.keys.events_meta, "hold_until_ms", -55_000)  # nearly a minute later
    ns.store.hincrby(ns.keys.events_meta, "hold_from_ms", -55_000)
    ns.rewritten = True
    outage(ns)
    ns.lapse()
    assert ns.run(expire(ns.keys, origin())) == 0
    assert ns.addrs() == {0: address("b1")}


def test_a_member_that_is_dead_leaves_within_its_lease(ns: Namespace) -> None:
    ns.register(timeout_ms=120_000)
    ns.tick()
    clock_back(ns)
    ns.tick()
    walked(ns)
    end_ms = ns.store.zscore(ns.keys.leases, member_key("c1", address("b1")))
    assert end_ms <= ns.now_ms() + 120_000


def test_workers_that_died_before_it_are_dead_soon(ns: Namespace) -> None:
    ns.tick("w1")
    clock_back(ns)
    ns.tick("w2")
    ends = dict(ns.store.zrange(ns.keys.workers, 0, -1, withscores=True))
    assert max(ends.values()) <= ns.now_ms() + 10_000


def test_ids_of_entries_go_on(ns: Namespace) -> None:
    ns.register()
    ns.store.xadd(ns.keys.events, {"kind": "x"}, id=f"{ns.now_ms() + HOUR}-0")
    ns.register("b2")
    ids = [event_id for event_id, _ in ns.store.xrange(ns.keys.events)]
    assert int(ids[-1].partition("-")[0]) >= ns.now_ms() + HOUR - 5_000
    ns.store.flushall()


def walked(ns: Namespace) -> None:
    ns.run(Walk(ns.keys, origin(), "w", timeout_ms=120_000, rows_per_s=inf).run())
    ns.rewritten = True
