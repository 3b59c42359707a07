"""No host's brokers take more than their percentage of a namespace: those of others are accepted."""

from collections.abc import Iterable
from typing import Any

import pytest
import redis as redis_py
from msgspec.structs import replace

from registry.errors import LimitReached
from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.options.networks import link_of
from registry.registration.register import Registered, register
from registry.repair.state import Repaired
from registry.topics import register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import origin, registration
from tests.registry.namespace import Namespace
from tests.registry.test_repair import a_walk

GREEDY, OTHER = "10.0.0.66", "10.0.0.1"
REFUSAL = r"more than maxPercentOfHost=50 allows \({} from host 10\.0\.0\.66\)$"
LARGE = 1200
"""Topics of a first registration in several scripts."""


def limits(brokers: int = 3_000, topics: int = 500_000, percent: int = 50) -> Limits:
    return replace(DEFAULT_LIMITS, max_brokers=brokers, max_topics=topics, max_percent_of_host=percent)


def sent(ns: Namespace, given: Limits, *args: Any, host: str | None = GREEDY, **kwargs: Any) -> Registered:
    return ns.run(register(ns.keys, registration(*args, **kwargs), origin(), host=host, limits=given))


def named(start: str, count: int) -> list[str]:
    return [f"{start}{number}" for number in range(count)]


def refused(ns: Namespace, given: Limits, name: str, topics: Iterable[str] = (), **kwargs: Any) -> None:
    before = ns.store.xlen(ns.keys.events)
    what = "topics" if topics else "brokers"
    with pytest.raises(LimitReached, match=f"broker '{name}' at .*: {REFUSAL.format(what)}"):
        sent(ns, given, name, topics=tuple(topics), **kwargs)
    assert ns.store.xlen(ns.keys.events) == before


def test_brokers_of_one_host_take_half(ns: Namespace) -> None:
    few = limits(brokers=20)
    for name in named("made-up-", 10):
        sent(ns, few, name)
    refused(ns, few, "made-up-10")
    for name in named("real-", 10):
        sent(ns, few, name, host=OTHER)
    with pytest.raises(LimitReached, match="maxBrokers=20"):
        sent(ns, few, "real-10", host=OTHER)
    for name in named("made-up-", 10):  # they were there, and go on
        sent(ns, few, name, version=2)
        sent(ns, few, name, 1, version=2)
    ns.unregister("made-up-0")
    ns.unregister("made-up-0", 1)
    sent(ns, few, "made-up-11")  # its place was free
    assert a_walk(ns) == Repaired()


@pytest.mark.parametrize("count", [20, LARGE])
def test_topics_of_one_host_take_half(ns: Namespace, count: int) -> None:
    few = limits(topics=4 * count)
    sent(ns, few, "made-up-1", topics=named("M", count))
    sent(ns, few, "made-up-2", topics=named("N", count))
    refused(ns, few, "made-up-3", named("O", count))
    refused(ns, few, "made-up-2", [*named("N", count), "O"], version=2)
    with pytest.raises(LimitReached, match=REFUSAL.format("topics")):
        ns.run(register_topic(ns.keys, "O", [QueueData("made-up-1", 4, 4, 6, 0)], origin(), few))
    sent(ns, few, "made-up-3", topics=named("M", count))  # which are there
    sent(ns, few, "real-1", topics=named("R", count), host=OTHER)
    sent(ns, few, "real-1", topics=[*named("R", count), "S"], host=OTHER, version=2)
    ns.run(register_topic(ns.keys, "T", [QueueData("real-1", 4, 4, 6, 0)], origin(), few))
    ns.unregister("made-up-2")
    ns.clean_up()
    sent(ns, few, "made-up-4", topics=named("O", count // 2))
    assert a_walk(ns) == Repaired()


def test_topics_that_a_host_has_with_others_count_in_part(ns: Namespace) -> None:
    few = limits(topics=100)
    sent(ns, few, "real-1", topics=named("T", 40), host=OTHER)
    for name in named("there-too-", 3):
        sent(ns, few, name, topics=named("T", 40), host=f"10.0.1.{name[-1]}")
    sent(ns, few, "real-1", topics=named("T", 60), host=OTHER, version=2)


@pytest.mark.parametrize("host", [None, ""])
def test_an_unknown_host_has_no_limit(ns: Namespace, host: str | None) -> None:
    few = limits(brokers=8, topics=30)
    for name in named("b", 8):
        sent(ns, few, name, topics=(name, f"{name}x"), host=host)


@pytest.mark.parametrize("key", ["broker", "route"])
def test_a_damaged_key_refuses_no_topics(redis: redis_py.Redis, key: str) -> None:
    ns, few = Namespace(redis), limits(topics=8)
    for name, host in (("first", OTHER), ("second", "10.0.0.2")):
        sent(ns, few, name, topics=named(f"{name}-", 3), host=host)
    damaged = ns.keys.broker("first") if key == "broker" else ns.keys.route("first-0")
    ns.store.delete(damaged)
    ns.store.set(damaged, "damaged")
    sent(ns, few, "third", topics=("T1", "T2"))
    assert ns.route("T1").queue_datas


def test_a_hundred_percent_is_no_limit(ns: Namespace) -> None:
    few = limits(brokers=8, topics=16, percent=100)
    for name in named("b", 8):
        sent(ns, few, name, topics=(name, f"{name}x"))


def test_a_sample_decides(ns: Namespace) -> None:
    """Of 600 names 200 are looked at: what is far from the limit is judged in the same way each time."""
    many = limits(brokers=1000)
    for name in named("made-up-", 450):
        sent(ns, many, name)
    for name in named("real-", 150):
        sent(ns, many, name, host=OTHER)
    sent(ns, many, "real-150", host=OTHER)
    refused(ns, limits(brokers=800), "made-up-450")
    sent(ns, limits(brokers=1200), "made-up-450")


@pytest.mark.parametrize(
    ("host", "link"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("[fe80::1%eth0]", "fe80::/64"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("a:b", "a:b"),
    ],
)
def test_the_addresses_of_one_link_are_one_host(host: str, link: str) -> None:
    assert link_of(host) == link
