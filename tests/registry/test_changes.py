"""Changed registrations of a master whose table is cached: one script, with the same result as without the cache."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import redis as redis_py
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.errors import RegistryError
from registry.events.entry import Event
from registry.keys import Keys
from registry.kv import put
from registry.plans import Acquire, Pause, Plan
from registry.queue_data.rewrite import wipe_write_perm
from registry.registration.cache import RegistrationCache
from registry.registration.register import Registered, register
from registry.topics import delete_topic
from tests.registry.brokers import address, mapping_info, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped
from tests.registry.stored import tables

OF_THE_MOMENT = ("op", "since_ms", "last_seen_ms", "lease_ms", "effective_ms", "inc")


class Twins:
    """Two namespaces that get the same registrations, one from a worker that caches them."""

    def __init__(self, store: redis_py.Redis) -> None:
        self.both = Namespace(store, Keys("knows")), Namespace(store, Keys("forgets"))
        self.registration_cache = RegistrationCache(time.monotonic)
        self.fields: dict[str, Any] = {"topics": dict.fromkeys(("T1", "T2", "T3"), "8,8,6,0"), "version": 1}
        self.owner = "w1/1"
        self.scripts: list[str] = []  # what the last registration asked of the store
        for ns in self.both:
            ns.tick("w1")

    def register(self, **more: Any) -> None:
        answers: list[Any] = []
        self.fields["version"] += 1
        for ns, memory in zip(self.both, (self.registration_cache, None), strict=True):
            plan: Stepped[Registered] = Stepped(
                register(
                    ns.keys,
                    registration(**{**self.fields, **more}),
                    origin(),
                    owner=self.owner,
                    registration_cache=memory,
                ),
                ns.store,
            )
            asked = []
            while plan.request is not None:
                if not isinstance(plan.request, Acquire | Pause):
                    asked.append(getattr(plan.request, "name", "command"))
                plan.step()
            try:
                done = plan.finish()
                answers.append((done.master_address, done.ha_address, done.order_table, done.refused))
            except RegistryError as error:
                answers.append(repr(error))
            if memory is not None:
                self.scripts = asked
        assert answers[0] == answers[1]
        assert self.changes(0) == self.changes(1)

    def changes(self, which: int) -> list[tuple[str, str, dict[str, Any]]]:
        return [_comparable(event) for event in self.both[which].new_entries()]

    def each(self, plan: Callable[[Keys], Plan[object]]) -> None:
        for ns in self.both:
            ns.run(plan(ns.keys))

    def assert_alike(self) -> None:
        first, second = (tables(ns.store, ns.keys) for ns in self.both)
        assert (first.brokers, first.members) == (second.brokers, second.members)
        for ns in self.both:
            ns.clean_up()
            ns.check()

    def step(self, what: str, number: int) -> None:
        """Change what the broker says, or what is stored, in both."""
        topic, fields, topics = f"T{number + 1}", self.fields, self.fields["topics"]
        match what:
            case "topic":
                fields["topics"] = topics | {topic: f"{number},4,6,0"}
            case "leave out":
                fields["topics"] = {name: text for name, text in topics.items() if name != topic}
            case "ha" | "zone":
                fields[what] = f"127.1.1.{number}:1"
            case "filters":
                fields[what] = (f"127.1.1.{number}:1",)
            case "acting":
                fields[what] = bool(number % 2)
            case "mapping":
                fields["mappings"] = [mapping_info("T1", epoch=number)]
            case "same version":
                fields["version"] -= 1
            case "owner":
                self.owner = f"w1/{number}"
            case "cluster":
                self.register(cluster="c2")
            case "slave":
                self.register(number=1, at=address("b1", 1))
            case "delete":
                self.each(lambda keys: delete_topic(keys, topic, "", origin()))
            case "wipe":
                self.each(lambda keys: wipe_write_perm(keys, "b1", origin()))
            case "order":
                self.each(lambda keys: put(keys, "ORDER_TOPIC_CONFIG", topic, f"b1:{number}", origin()))
            case "lapse":
                for ns in self.both:
                    ns.lapse()
            case "unregister":
                for ns in self.both:
                    ns.unregister()


def _comparable(event: Event) -> tuple[str, str, dict[str, Any]]:
    fields = {name: value for name, value in event.fields.items() if name not in OF_THE_MOMENT}
    return event.kind, event.cause, fields


STEPS = [
    *("topic", "leave out", "ha", "zone", "filters", "acting", "mapping", "same version", "owner", "cluster"),
    *("slave", "delete", "wipe", "order", "lapse", "unregister"),
]


@pytest.fixture
def twins(redis: redis_py.Redis) -> Twins:
    """Whose broker has registered, and registered a change."""
    twins = Twins(redis)
    twins.register()
    twins.step("topic", 1)
    twins.register()
    assert twins.scripts == ["reregister_topics"]
    return twins


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(("topic", 2), id="a topic"),
        pytest.param(("leave out", 1), id="a topic less"),
        pytest.param(("order", 1), id="nothing but the version, and an order table"),
    ],
)
def test_a_change_of_topics_is_one_script(twins: Twins, what: tuple[str, int]) -> None:
    for _ in range(2):
        twins.step(*what)
        twins.register()
        assert twins.scripts == ["reregister_topics"]
    twins.assert_alike()


@pytest.mark.parametrize(
    ("topics", "scripts"), [(1_500, ["reregister_topics"]), (2_500, ["command", "reregister_topics"])]
)
def test_of_a_big_table_too(redis: redis_py.Redis, topics: int, scripts: list[str]) -> None:
    """What is stored of a very big one is not remembered."""
    twins = Twins(redis)
    twins.fields["topics"] = {f"T{number}": "8,8,6,0" for number in range(1, topics + 1)}
    twins.register()
    for number in (10, 700, 1_400):
        twins.step("topic", number)
        twins.register()
        assert twins.scripts == scripts
    twins.fields["topics"] = twins.fields["topics"] | {"T11": "8,8,6,0"}  # as it was at first
    twins.register()
    twins.assert_alike()


@pytest.mark.parametrize(
    ("number", "scripts"),
    [
        pytest.param(1, ["reregister_topics"], id="one that was left out is known still"),
        pytest.param(7, ["command", "reregister_topics"], id="a new one is looked for"),
    ],
)
def test_a_topic_more(twins: Twins, number: int, scripts: list[str]) -> None:
    twins.step("leave out", number)
    twins.register()
    twins.step("topic", number)
    twins.register()
    assert twins.scripts == scripts
    twins.assert_alike()


@pytest.mark.parametrize(
    "what",
    ["ha", "zone", "filters", "acting", "owner", "cluster", "slave", "delete", "wipe", "lapse", "unregister"],
)
def test_whatever_else_changed_is_for_the_long_way(twins: Twins, what: str) -> None:
    twins.step(what, 2)
    twins.step("topic", 2)
    twins.register()
    assert "register" in twins.scripts
    twins.assert_alike()
    twins.step("topic", 0)
    twins.register()
    assert twins.scripts == ["reregister_topics"]
    twins.assert_alike()


def test_what_another_worker_stored_meanwhile_is_not_taken_for_ours(twins: Twins) -> None:
    ours = twins.registration_cache
    same = {"version": twins.fields["version"], "ha": "127.1.1.1:1"}
    for change in (
        same,
        {"version": 50},
        {"version": 51, "topics": ("T1",)},
        {"version": 52, "ha": "127.1.1.1:1"},
    ):
        twins.registration_cache = RegistrationCache(time.monotonic)
        twins.register(**change)
        twins.registration_cache = ours
        twins.step("topic", 2)
        twins.register()
        assert "register" in twins.scripts
        twins.assert_alike()


def test_topics_changed_under_the_same_version_are_written_with_the_next(twins: Twins) -> None:
    twins.step("same version", 0)
    twins.step("topic", 2)
    twins.register()
    assert "reregister_topics" not in twins.scripts
    twins.assert_alike()
    twins.register()
    twins.assert_alike()
    assert twins.both[0].topics()["T3"] == "2,4,6,0"


def test_of_two_clusters_each_writes_its_own(twins: Twins) -> None:
    for number in range(3):
        twins.step("topic", number)
        twins.register(cluster="c2")
    assert twins.scripts == ["reregister_topics"]
    twins.assert_alike()


def test_a_slave_is_for_the_long_way(twins: Twins) -> None:
    for version in (7, 8):
        twins.register(number=1, at=address("b1", 1), version=version)
        assert "reregister_topics" not in twins.scripts


def test_an_emptied_store_is_written_again_from_scratch(twins: Twins) -> None:
    for ns in twins.both:
        for key in ns.store.keys(f"{ns.keys.events.rpartition(':')[0]}:*"):
            ns.store.delete(key)
        ns.new_entries()
        ns.tick("w1")
    twins.step("topic", 2)
    twins.register()
    assert "register" in twins.scripts
    twins.assert_alike()


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), min_size=4, max_size=14))
def test_it_writes_and_answers_the_same_as_without_a_cache(
    redis: redis_py.Redis, steps: list[tuple[str, int]]
) -> None:
    redis.flushall()
    twins = Twins(redis)
    twins.register()
    for what, number in steps:
        twins.step(what, number)
        twins.register()
    twins.assert_alike()
