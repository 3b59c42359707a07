"""A worker that knows what it stored last reads only what changed, and stores just the same."""

import time
from collections.abc import Callable

import pytest
import redis as redis_py
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from registry.drivers import run
from registry.keys import Keys
from registry.plans import Plan, ScriptItem
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.registration.cache import RegistrationCache
from registry.registration.cached_tables import BYTES_MOST, CachedTable, CachedTables
from registry.registration.decision import Decision
from registry.registration.register import register
from registry.registration.registered import Registered
from registry.registration.request import Signature
from registry.topics import delete_topic
from rocketmq_remoting.table_blocks import Block
from tests.registry.brokers import origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped
from tests.registry.stored import tables

MANY = {f"a-topic-with-a-usual-name-{number:05}": "8,8,6,0" for number in range(1500)}
NAMES = list(MANY)
STEPS = ("change", "add", "leave out", "delete", "wipe", "write", "slave", "twin", "clean", "increment")


class Counting(CachedTables):
    """Counts hits."""

    hits = 0

    def get(self, member: str, decision: Decision) -> CachedTable | None:
        cached = super().get(member, decision)
        self.hits += cached is not None
        return cached


def caches() -> tuple[RegistrationCache, Counting]:
    """A registration cache, and the cache of tables in it."""
    registration_cache, tables_cache = RegistrationCache(time.monotonic), Counting()
    registration_cache.tables = tables_cache
    return registration_cache, tables_cache


class Twins:
    """Two namespaces that get the same registrations, one from a worker that caches tables."""

    def __init__(self, store: redis_py.Redis) -> None:
        self.both = Namespace(store, Keys("knows")), Namespace(store, Keys("forgets"))
        self.registration_cache, self.tables_cache = caches()
        self.topics = dict(MANY)
        self.version = 0
        self.hits = 0  # registrations that found their table cached

    def register(self, number: int = 0, cluster: str = "c1", topics: dict[str, str] | None = None) -> None:
        """Register all topics, or `topics` of an incremental registration."""
        self.version += 1
        before = self.tables_cache.hits
        for ns, memory in zip(self.both, (self.registration_cache, None), strict=True):
            sent = self.topics if topics is None else topics
            asked = registration("b1", number, sent, version=self.version, cluster=cluster)
            ns.run(register(ns.keys, asked, origin(), registration_cache=memory))
        self.hits += self.tables_cache.hits > before

    def each(self, plan: Callable[[Keys], Plan[object]]) -> None:
        for ns in self.both:
            ns.run(plan(ns.keys))

    def step(self, what: str, number: int) -> None:
        name = NAMES[number]
        if what == "change":
            self.topics[name] = f"4,{number % 9},6,0"
        elif what == "add":
            self.topics[f"new-{number}"] = "1,1,6,0"
        elif what == "increment":
            self.topics[name] = f"3,{number % 9},6,0"
            self.register(topics={name: self.topics[name]})
        elif what == "leave out":
            self.topics.pop(name, None)
        elif what == "delete":
            self.each(lambda keys: delete_topic(keys, name, "", origin()))
        elif what == "wipe":
            self.each(lambda keys: wipe_write_perm(keys, "b1", origin()))
        elif what == "write":
            self.each(lambda keys: add_write_perm(keys, "b1", origin()))
        elif what == "slave":
            self.register(1)
        elif what == "twin":
            self.register(0, "c2")
        elif what == "clean":
            for ns in self.both:
                ns.clean_up()

    def assert_alike(self) -> None:
        first, second = (tables(ns.store, ns.keys).brokers["b1"] for ns in self.both)
        assert first.topics == second.topics
        for ns in self.both:
            ns.check()


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, len(NAMES) - 1)), min_size=3, max_size=8))
def test_it_stores_what_one_stores_that_reads_all(
    redis: redis_py.Redis, steps: list[tuple[str, int]]
) -> None:
    redis.flushall()
    twins = Twins(redis)
    twins.register()
    for what, number in steps:
        twins.step(what, number)
        twins.register()
    twins.assert_alike()


def test_a_table_that_stays_as_it_was_stored_is_cached(redis: redis_py.Redis) -> None:
    twins = Twins(redis)
    twins.register()
    assert twins.hits == 0
    for number in range(3):
        twins.step("change", 500 * number)
        twins.register()
        assert twins.hits == number + 1
    twins.assert_alike()


def test_an_incremental_registration_leaves_the_other_topics_known(redis: redis_py.Redis) -> None:
    """Each names one topic in turn, of those that the first one named all."""
    (registration_cache, _), ns = caches(), Namespace(redis)

    def plan(topics: dict[str, str], version: int) -> Plan[Registered]:
        body = registration("b1", 0, topics, version=version)
        return register(ns.keys, body, origin(), registration_cache=registration_cache)

    run(plan(MANY, 1), redis)
    for number in range(3):
        registered = Stepped(plan({NAMES[number]: f"{number},1,6,0"}, 2 + number), redis)
        assert isinstance(registered.request, ScriptItem), "it reads nothing before"
        assert registered.request.name == "reregister_topics"
        registered.finish()
    topics = tables(redis, ns.keys).brokers["b1"].topics
    assert topics == MANY | {NAMES[number]: f"{number},1,6,0" for number in range(3)}
    ns.check()


@pytest.mark.parametrize("what", ["delete", "wipe", "slave", "twin"])
def test_after_whatever_altered_it_on_the_side_it_is_read_whole(redis: redis_py.Redis, what: str) -> None:
    twins = Twins(redis)
    twins.register()
    twins.step(what, 7)
    hits = twins.hits
    twins.register()
    assert twins.hits == hits
    twins.assert_alike()


def test_a_table_written_in_several_slices_is_cached_too(redis: redis_py.Redis) -> None:
    twins = Twins(redis)
    twins.register()
    twins.topics = dict.fromkeys(MANY, "4,4,6,0")
    twins.register()
    twins.step("change", 3)
    twins.register()
    assert twins.hits == 2
    twins.assert_alike()


def test_an_alteration_while_it_is_carried_out_makes_it_read_all(redis: redis_py.Redis) -> None:
    """The first attempt knew the table, the second must not."""
    (registration_cache, tables_cache), ns = caches(), Namespace(redis)
    run(
        register(ns.keys, registration("b1", 0, MANY), origin(), registration_cache=registration_cache), redis
    )
    topics = MANY | {NAMES[700]: "1,1,6,0"}
    plan = Stepped(
        register(
            ns.keys, registration("b1", 0, topics, version=2), origin(), registration_cache=registration_cache
        ),
        redis,
    )
    while not tables_cache.hits:
        plan.step()
    ns.run(delete_topic(ns.keys, NAMES[10], "", origin()))
    plan.finish()
    found = tables(redis, ns.keys).brokers["b1"].topics
    assert found.keys() == topics.keys()
    ns.check()


def test_another_registration_meanwhile_makes_it_read_all(redis: redis_py.Redis) -> None:
    """The first has compared its body with the cached table, when the second changes table and cache. The cache counts
    the bytes of what it has then."""
    (registration_cache, tables_cache), ns = caches(), Namespace(redis)

    def plan(topics: dict[str, str], version: int) -> Plan[Registered]:
        body = registration("b1", 0, topics, version=version)
        return register(ns.keys, body, origin(), registration_cache=registration_cache)

    run(plan(MANY, 1), redis)
    slow = Stepped(plan(MANY | {NAMES[700]: "1,1,6,0"}, 3), redis)
    while not tables_cache.hits:
        slow.step()
    run(plan(MANY | {NAMES[700]: "2,2,6,0", "new": "8,8,6,0"}, 2), redis)
    slow.finish()
    topics = tables(redis, ns.keys).brokers["b1"].topics
    assert topics[NAMES[700]] == "1,1,6,0"
    [(member, table)] = tables_cache._tables.entries.items()
    assert tables_cache._tables.size == table.cost
    assert table.texts is not None
    assert topics.items() <= table.texts.items()
    assert tables_cache.last(member) == table
    ns.check()


def test_their_bytes_are_bounded() -> None:
    tables_cache, slices = CachedTables(), {bytes([i]): Block(1, 1) for i in range(200)}
    decision = Decision("", "1", 1, first=False, every=True, writes=True, strips=False, same=False)
    table = CachedTable(Signature("s", None), decision, slices, {"T": "8,8,6,0"})
    bare = replace(table, texts=None)
    for number in range(1000):
        tables_cache.put(f"m{number}", table)
    kept = [number for number in range(1000) if tables_cache.last(f"m{number}") is not None]
    assert kept == list(range(1000 - BYTES_MOST // bare.cost, 1000))
    assert tables_cache.get("m999", decision) == bare
    assert tables_cache.get("m999", decision.done("1", 2)) is None
    tables_cache.drop("m999")
    tables_cache.drop("m999")
    assert tables_cache.last("m999") is None


def test_texts_are_kept_as_long_as_there_is_much_room() -> None:
    tables_cache = CachedTables()
    decision = Decision("", "1", 1, first=False, every=True, writes=True, strips=False, same=False)
    table = CachedTable(Signature("s", None), decision, {}, {f"T{number}": "" for number in range(1999)})
    for number in range(100):
        tables_cache.put(f"m{number}", table)
    with_texts = [number for number in range(100) if tables_cache.last(f"m{number}") == table]
    assert with_texts == list(range(BYTES_MOST // 2 // table.cost))
    assert tables_cache.last("m99") == replace(table, texts=None)


def test_a_table_costs_what_its_names_take(ns: Namespace) -> None:
    """A character outside of ASCII makes all of its name four times as long."""

    def size(broker: str, name: str) -> int:
        cache, tables_cache = caches()
        topics = {f"{number}{name}": "1,1,6,0" for number in range(300)}
        sizes = []
        for version, first in enumerate(("1,1,6,0", "2,2,6,0"), 1):
            topics[f"0{name}"] = first
            asked = registration(broker, topics=topics, version=version)
            ns.run(register(ns.keys, asked, origin(), registration_cache=cache))
            sizes.append(tables_cache._tables.size)
        assert sizes[0] == sizes[1]
        return sizes[0]

    assert size("b2", "\U0001f600" + "x" * 100) - size("b1", "x" * 101) >= 300 * 300
