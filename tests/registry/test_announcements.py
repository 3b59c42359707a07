"""Addresses that ready workers announce, on a real store."""

from registry.announcements import KEPT_MS, announce, ready_addresses
from registry.clock import LATE_MS
from tests.registry.namespace import Namespace


def announced(ns: Namespace, **workers: str) -> tuple[str, ...]:
    for worker, address in workers.items():
        ns.run(announce(ns.keys, worker, address))
    return ns.run(ready_addresses(ns.keys))


def test_an_address_is_there_once_whatever_workers_share_it_in_a_steady_order(ns: Namespace) -> None:
    assert announced(ns) == ()
    assert announced(ns, w1="10.0.0.2:9876", w2="10.0.0.2:9876") == ("10.0.0.2:9876",)
    assert announced(ns, w3="10.0.0.1:9876", w1="10.0.0.2:9876") == ("10.0.0.1:9876", "10.0.0.2:9876")


def test_a_worker_that_was_not_ready_for_5_s_is_left_out(ns: Namespace) -> None:
    announced(ns, w1="10.0.0.1:9876", w2="10.0.0.2:9876")
    ns.store.zincrby(ns.keys.announced, -LATE_MS - 1, "10.0.0.1:9876 w1")
    assert announced(ns) == ("10.0.0.2:9876",)
    assert announced(ns, w1="10.0.0.1:9876") == ("10.0.0.1:9876", "10.0.0.2:9876")


def test_a_clock_that_went_back_keeps_no_worker_that_is_gone(ns: Namespace) -> None:
    announced(ns, w1="10.0.0.1:9876")
    ns.store.zincrby(ns.keys.announced, 3_600_000, "10.0.0.1:9876 w1")
    assert announced(ns) == ()


def test_what_workers_announced_is_gone_a_minute_later(ns: Namespace) -> None:
    announced(ns, w1="10.0.0.1:9876")
    assert 0 < ns.store.pttl(ns.keys.announced) <= KEPT_MS
    ns.store.zincrby(ns.keys.announced, -KEPT_MS - 1, "10.0.0.1:9876 w1")
    announced(ns, w2="10.0.0.2:9876")
    assert ns.store.zrange(ns.keys.announced, 0, -1) == ["10.0.0.2:9876 w2"]


def test_what_no_worker_wrote_is_not_answered(ns: Namespace) -> None:
    announced(ns, w1="10.0.0.1:9876")
    for text in ("a:1;b:2 w2", "0.0.0.0:9876 w2", "evil", "", "a\n:1 w2"):
        ns.store.zadd(ns.keys.announced, {text: ns.now_ms()})
    assert announced(ns) == ("10.0.0.1:9876",)
