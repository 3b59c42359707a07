"""Changed registrations of one moment: small ones share a call, and each ends as if it were alone."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from math import inf
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import AsyncDriver
from registry.keys import Keys
from registry.kv import put
from registry.long_work import time_slices
from registry.plans import Plan
from registry.registration.cache import RegistrationCache
from registry.registration.register import Registered, register
from registry.registration.reregistration import JOINED_MOST, JOINED_TOPICS
from registry.removal import unregister
from registry.store.connect import connect_async
from tests.registry.brokers import address, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.stored import entries as stream_entries
from tests.registry.stored import tables

KEYS = Keys()
NAMES = [f"b{number}" for number in range(5)]
EIGHTH_MS = 120_000 // 8
END = "no more of interest"
COMMANDS_MAX = 1000


class Worker:
    """One process with its cache: the registrations that it is given come at one moment."""

    def __init__(self, store: EmbeddedStore, redis: redis_py.Redis) -> None:
        self.ns = Namespace(redis, KEYS)
        self.ns.tick("w1")
        self.url = store.url
        self._cache = RegistrationCache(time.monotonic)
        self._redis = redis

    def register(self, *many: dict[str, Any]) -> list[Any]:
        """What became of each, or the error that it got."""
        return asyncio.run(self._register(many))

    async def _register(self, many: Sequence[dict[str, Any]]) -> list[Any]:
        driver = AsyncDriver(connect_async(self.url))
        try:
            plans = [self.plan(fields) for fields in many]
            return await asyncio.gather(*(driver.run(plan) for plan in plans), return_exceptions=True)
        finally:
            await driver.close()

    def plan(self, fields: dict[str, Any]) -> Plan[Registered]:
        return register(KEYS, registration(**fields), origin(), owner="w1/1", registration_cache=self._cache)

    def calls(self, act: Callable[[], object]) -> list[int]:
        """How many items each call of lua/reregister_topics.lua had meanwhile; 0 for one of lua/register.lua."""
        with self.ns.store.monitor() as monitor:
            act()
            self._redis.echo(END)
            seen = [*takewhile(lambda one: END not in one["command"], monitor.listen())]
        commands = [one["command"] for one in seen if one["client_type"] != "lua"]
        return [command.count(":alive:") for command in commands if re.search(r":alive:|\bdry\b", command)]


@pytest.fixture
def worker(store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """It knows the table of each of NAMES, and makes no pause between two, which a busy machine would need."""
    monkeypatch.setattr(time_slices, "SHORT_S", inf)
    worker = Worker(store, redis)
    for version, perm in ((1, 6), (2, 4)):
        results = worker.register(*(changed(name, version, T1=perm) for name in NAMES))
        assert all(isinstance(one, Registered) for one in results)
    worker.ns.new_entries()
    return worker


def changed(name: str, version: int, **perms: int) -> dict[str, Any]:
    topics = {f"T{number}": "8,8,6,0" for number in range(1, 31)}
    return {
        "name": name,
        "topics": topics | {topic: f"8,8,{perm},0" for topic, perm in perms.items()},
        "version": version,
    }


def test_changes_of_one_moment_are_one_call(worker: Worker) -> None:
    worker.ns.run(put(KEYS, "ORDER_TOPIC_CONFIG", "T1", "b1:4", origin()))
    worker.ns.new_entries()
    done: list[Registered] = []
    calls = worker.calls(lambda: done.extend(worker.register(*(changed(name, 3, T2=4) for name in NAMES))))
    assert calls == [len(NAMES)]
    assert [one.order_table for one in done] == [{"T1": "b1:4"}] * len(NAMES)
    for name in NAMES:
        assert worker.ns.topics(name)["T1"] == "8,8,6,0"
        assert worker.ns.topics(name)["T2"] == "8,8,4,0"
    entries = worker.ns.new_entries()
    assert [(one.kind, one.fields["broker"]) for one in entries] == [
        ("topics_changed", name) for name in NAMES
    ]
    assert len({one.fields["op"] for one in entries}) == len(NAMES)
    worker.ns.check()


def test_an_unregistration_behind_a_change_comes_after_it(worker: Worker) -> None:
    """A broker that stops does not wait for the reply to its last one-way registration."""

    async def both() -> None:
        driver = AsyncDriver(connect_async(worker.url))
        leaves = unregister(KEYS, "c1", address("b1"), "b1", "0", origin())
        await asyncio.gather(driver.run(worker.plan(changed("b1", 3, T2=4))), driver.run(leaves))
        await driver.close()

    worker.ns.unregister("b2")  # so that the script is known
    worker.ns.new_entries()
    asyncio.run(both())
    assert [one.kind for one in worker.ns.new_entries()] == ["topics_changed", "broker_removed"]
    assert "b1" not in tables(worker.ns.store, KEYS).brokers


def test_a_registration_behind_an_unregistration_comes_after_it(worker: Worker) -> None:
    """While the store stands still, both may wait: of the process that ends, and of the one that begins."""

    async def both() -> None:
        driver = AsyncDriver(connect_async(worker.url))
        leaves = unregister(KEYS, "c1", address("b1"), "b1", "0", origin())
        await asyncio.gather(driver.run(leaves), driver.run(worker.plan(changed("b1", 2, T1=4))))
        await driver.close()

    worker.ns.unregister("b2")  # so that the scripts are known
    worker.register(changed("b3", 2, T1=4))
    asyncio.run(both())
    assert "b1" in tables(worker.ns.store, KEYS).brokers
    worker.ns.check()


@pytest.mark.parametrize("ago_ms", [0, EIGHTH_MS, 3 * EIGHTH_MS])
def test_leases_are_renewed_with_them(worker: Worker, ago_ms: int) -> None:
    """And the countdown once in an eighth of the time-out, as with heartbeats."""
    store, dues = worker.ns.store, set()
    members = [f"c1:{address(name)}" for name in NAMES]
    for member in members:
        store.zincrby(KEYS.leases, -ago_ms, member)  # as if it had been renewed so long ago
    before = {
        member: (store.zscore(KEYS.leases, member), store.get(KEYS.alive(member))) for member in members
    }
    worker.ns.next_ms()
    worker.register(*(changed(name, 3, T2=4) for name in NAMES))
    for member, (lease, countdown) in before.items():
        now = store.zscore(KEYS.leases, member)
        assert now > lease
        dues.add(now // EIGHTH_MS != lease // EIGHTH_MS)
        assert store.get(KEYS.alive(member)) == (f"{now:.0f}" if True in dues else countdown)
    assert len(dues) == 1  # of one call, they all are or none is
    assert dues == {True} or ago_ms < EIGHTH_MS
    worker.ns.check()


def test_of_one_broker_only_the_first_is_taken(worker: Worker) -> None:
    """The other one was compared with a table that is another now."""
    results = worker.register(changed("b1", 3, T2=4), changed("b2", 3, T2=4), changed("b1", 4, T3=4))
    assert all(isinstance(one, Registered) for one in results)
    topics = worker.ns.topics("b1")
    assert {topic for topic, text in topics.items() if text != "8,8,6,0"} in ({"T2"}, {"T3"})
    worker.ns.check()
    assert tables(worker.ns.store, KEYS).brokers["b2"].topics["T2"] == "8,8,4,0"


def test_one_that_changed_meanwhile_stops_no_other(worker: Worker) -> None:
    worker.ns.register("b3", topics=("T1", "T9"), version=50)
    worker.ns.lapse("b4")
    worker.register(*(changed(name, 60, T2=4) for name in NAMES))
    for name in NAMES:
        assert worker.ns.topics(name)["T2"] == "8,8,4,0"
    worker.ns.check()


def test_a_damaged_one_stops_no_other_and_is_healed(worker: Worker) -> None:
    """An error comes before anything is written, and each is asked for alone then."""
    worker.ns.store.delete(KEYS.member(f"c1:{address('b2')}"))
    worker.ns.store.set(KEYS.member(f"c1:{address('b2')}"), "no hash")
    results = worker.register(*(changed(name, 3, T2=4) for name in NAMES))
    assert all(isinstance(one, Registered) for one in results)
    for name in NAMES:
        assert worker.ns.topics(name)["T2"] == "8,8,4,0"


def test_the_entries_of_all_are_in_a_stream_that_begins_among_them(worker: Worker) -> None:
    """The old one takes two more: its last id is near the greatest there is."""
    end = 2**64 - 1
    worker.ns.store.execute_command("XSETID", KEYS.events, f"{end}-{end - 2}")
    assert worker.calls(lambda: worker.register(*(changed(name, 3, T2=4) for name in NAMES))) == [len(NAMES)]
    entries = [one.fields for one in stream_entries(worker.ns.store, KEYS)]
    assert [one.get("broker") for one in entries] == [None, *NAMES]
    assert [one["seq"] for one in entries] == [f"{number}" for number in range(1, len(NAMES) + 2)]
    assert [one.get("part") for one in entries] == ["1/2", "2/2", None, None, None, None]
    assert len({one["inc"] for one in entries}) == 1


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"T99": 6}, id="a new topic: limits count what is stored"),
        pytest.param({f"T{number}": 4 for number in range(1, JOINED_TOPICS + 3)}, id="many topics"),
    ],
)
def test_what_may_be_much_is_alone(worker: Worker, more: dict[str, int]) -> None:
    calls = worker.calls(lambda: worker.register(*(changed(name, 3, **more) for name in NAMES)))
    assert calls == [1] * len(NAMES)
    worker.ns.check()


def test_a_call_has_so_many_at_most(worker: Worker) -> None:
    names = [f"m{number}" for number in range(2 * JOINED_MOST)]
    for version in (1, 2):
        worker.register(*(changed(name, version, T1=2 * version) for name in names))
    calls = worker.calls(lambda: worker.register(*(changed(name, 3, T2=4) for name in names)))
    assert calls == [JOINED_MOST] * 2


def test_the_fullest_call_gives_redis_little_to_do(worker: Worker) -> None:
    """Commands are counted, not timed: a µs or two each."""
    names = [f"m{number}" for number in range(JOINED_MOST)]
    perms = {f"T{number}": 4 for number in range(1, JOINED_TOPICS + 1)}
    for version in (1, 2):
        worker.register(*(changed(name, version, T30=2 * version) for name in names))
    with worker.ns.store.monitor() as monitor:
        worker.register(*(changed(name, 3, **perms) for name in names))
        worker.ns.store.echo(END)
        seen = list(takewhile(lambda one: END not in one["command"], monitor.listen()))
    assert JOINED_MOST * JOINED_TOPICS < sum(one["client_type"] == "lua" for one in seen) < COMMANDS_MAX
    assert {worker.ns.topics(name)["T16"] for name in names} == {"8,8,4,0"}
