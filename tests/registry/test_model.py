"""The registry against a model of RocketMQ's rules: any requests in any order, alone and interleaved."""

import inspect
from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from typing import Any

import pytest
import redis as redis_py
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from mqnamesrv.store import EmbeddedStore
from registry.clusters import cluster_info
from registry.events.replay import Tables, replay
from registry.keys import Keys, member_key
from registry.kv import delete, export_table, put
from registry.plans import Plan
from registry.registration.heartbeat import NO_VERSION
from registry.removal import Disconnected, release_owner, remove_disconnected
from registry.routes import read_route
from registry.store.connect import connect
from registry.topics import all_topics, topics_of_cluster
from rocketmq_remoting.topic_queue_mapping import decode_mapping_info
from tests.registry.brokers import origin
from tests.registry.check_tables import check_tables
from tests.registry.model import Model, ModelMember
from tests.registry.steps import Stepped
from tests.registry.stored import assert_replays, entries, tables
from tests.registry.world import (
    ADDRESSES,
    BUSY,
    CLUSTERS,
    OWNERS,
    TOPICS,
    Asked,
    claims,
    deletions,
    expiring,
    guarded_heartbeats,
    guarded_removals,
    guarded_settings,
    requests,
    rewrites,
    walks,
)

pytestmark = pytest.mark.timeout(3600)  # a time-out in the middle of a run would count as a finding
NIGHTLY = settings.get_current_profile_name() == "nightly"
PROFILE = settings(
    max_examples=1000 if NIGHTLY else 8,
    stateful_step_count=50 if NIGHTLY else 25,
    derandomize=not NIGHTLY,  # each night tries something new; a change is judged by the same steps
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
UNWRITTEN = NO_VERSION.text()
_namespaces = count(1)
State = tuple[int, int, bool]
"""Of a member: its serial, how often it was renewed, and whether its lease is over."""


class RegistryMachine(RuleBasedStateMachine):
    """Does each request twice, in Redis and in the model, and compares all that can be seen."""

    def __init__(self, store: redis_py.Redis) -> None:
        super().__init__()
        self.store: Any = store
        self.keys = Keys(f"model-{next(_namespaces)}")
        self.model = Model()
        self.replayed = Tables()
        self.registrants = dict[str, str]()  # by key of the member, those of before
        self.seen = "-"
        self.disconnected: list[tuple[Disconnected, State]] = []
        self.store.zadd(self.keys.workers, {"w1": 9e15, "w2": 9e15})

    def run(self, plan: Plan[Any]) -> Any:
        return Stepped(plan, self.store).finish()

    def agree(self, asked: Asked) -> None:
        outcome = self.run(asked.plan(self.keys))
        expected = asked.change(self.model)
        assert outcome == expected, f"{asked.text}: {outcome}, but {expected} in the model"

    # -- one request at a time

    @rule(asked=claims, times=st.sampled_from((1, 1, 2)))
    def register(self, asked: Asked, times: int) -> None:
        for _ in range(times):
            lapsed = [key for key, member in self.model.members.items() if member.lapsed]
            outcome = self.run(asked.plan(self.keys))
            left = [key for key in lapsed if self.lease(*key) is not None]
            before = tables_of(self.model)
            recorded = deepcopy(self.model)
            expected = asked.change(recorded)
            if all(self.is_lapsed(recorded, key) for key in left):
                self.model = recorded
            else:  # the short cut of an equal registration, which records no lapse
                assert "records_lapses" in inspect.signature(asked.change).parameters
                expected = asked.change(self.model, records_lapses=False)  # type: ignore[call-arg]
                assert tables_of(self.model) == before
            assert outcome == expected, f"{asked.text}: {outcome}, but {expected} in the model"
            self.registrants_are_right()

    @rule(asked=guarded_heartbeats)
    def heartbeat(self, asked: Asked) -> None:
        self.agree(asked)

    @rule(asked=guarded_removals)
    def unregister(self, asked: Asked) -> None:
        self.agree(asked)

    @rule(asked=rewrites | deletions | guarded_settings)
    def change_topics(self, asked: Asked) -> None:
        self.agree(asked)

    @rule(asked=walks)
    def walk(self, asked: Asked) -> None:
        self.agree(asked)

    @rule()
    def expire(self) -> None:
        self.agree(expiring())

    @rule(cluster=st.sampled_from(CLUSTERS), address=st.sampled_from(ADDRESSES))
    def lapse(self, cluster: str, address: str) -> None:
        member = self.model.members.get((cluster, address))
        if member is None or member.lapsed:
            return
        member.lapsed = True
        key = member_key(cluster, address)
        self.store.zadd(self.keys.leases, {key: self.now_ms() - 1})
        self.store.delete(self.keys.alive(key))

    @rule(
        cluster=st.sampled_from(CLUSTERS), address=st.sampled_from(ADDRESSES), owner=st.sampled_from(OWNERS)
    )
    def close_connection(self, cluster: str, address: str, owner: str) -> None:
        self.grow_older(cluster, address)
        member_left = self.run(release_owner(self.keys, cluster, address, owner))
        last = self.model.release_owner(cluster, address, owner)
        assert (member_left is not None) == last
        if member_left is not None:
            member = self.model.members[cluster, address]
            self.disconnected.append((member_left, state_of(member)))

    @rule()
    def remove_disconnected(self) -> None:
        if not self.disconnected:
            return
        member_left, state = self.disconnected.pop(0)
        self.run(remove_disconnected(self.keys, member_left, "lost", origin()))
        member = self.model.members.get((member_left.cluster, member_left.address))
        if member is not None and not member.owners and state_of(member) == state:
            self.model.remove_disconnected(member)

    @rule(
        namespace=st.sampled_from(("ORDER_TOPIC_CONFIG", "other")),
        key=st.sampled_from(TOPICS),
        value=st.sampled_from((None, "", "b1:4")),
    )
    def change_kv(self, namespace: str, key: str, value: str | None) -> None:
        if value is None:
            self.run(delete(self.keys, namespace, key, origin()))
            self.model.kv.get(namespace, {}).pop(key, None)
        else:
            self.run(put(self.keys, namespace, key, value, origin()))
            self.model.kv.setdefault(namespace, {})[key] = value

    # -- several clients at once

    @rule(asked=st.lists(requests, min_size=2, max_size=3), random=st.randoms(use_true_random=False))
    def interleave(self, asked: list[Asked], random: Any) -> None:
        """The outcome is that of some order in which they came one after the other."""
        self.expire()
        plans: list[Stepped[Any]] = [Stepped(one.plan(self.keys), self.store) for one in asked]
        while open_plans := [plan for plan in plans if plan.request is not None]:
            random.choice(open_plans).step()
        outcomes = [plan.finish() for plan in plans]
        tables = self.stored()
        self.model.later = True
        done = {i: one for i, one in enumerate(asked) if outcomes[i] != BUSY}
        for model, expected in in_any_order(self.model, done):
            if all(is_expected(outcomes[i], expected[i]) for i in done) and tables_of(model) == tables:
                self.model = model
                self.model.later = False
                self.disconnected.clear()
                self.registrants_are_right(interleaved=True)
                return
        raise AssertionError(f"in no order: {[one.text for one in asked]} gave {outcomes} and {tables}")

    # -- what can be seen

    @invariant()
    def tables_are_equal(self) -> None:
        assert self.stored() == tables_of(self.model)

    @invariant()
    def readers_are_answered_alike(self) -> None:
        for topic in TOPICS:
            route = self.run(read_route(self.keys, topic))
            assert {
                one.data.broker_name: (
                    one.data.broker_addrs,
                    (
                        one.queues.read_queue_nums,
                        one.queues.write_queue_nums,
                        one.queues.perm,
                        one.queues.topic_sys_flag,
                    ),
                )
                for one in route.brokers
            } == self.model.route(topic)
        info = self.run(cluster_info(self.keys))
        living, listed = self.model.cluster_info()
        assert {name: data.broker_addrs for name, data in info.broker_addr_table.items()} == living
        assert {name: set(names) for name, names in info.cluster_addr_table.items()} == listed
        assert set(self.run(all_topics(self.keys))) == self.model.topics()
        for cluster in CLUSTERS:
            assert set(self.run(topics_of_cluster(self.keys, cluster))) == self.model.topics(cluster)
        assert self.run(export_table(self.keys)) == self.model.kv

    @invariant()
    def keys_agree_with_the_stream(self) -> None:
        check_tables(self.store, self.keys)
        new = entries(self.store, self.keys, self.seen)
        self.replayed = replay(self.replayed, new)
        self.seen = str(new[-1].id) if new else self.seen
        assert_replays(self.store, self.keys, self.replayed)

    def teardown(self) -> None:
        self.store.delete(*self.store.keys(f"{self.keys.prefix}*"))

    def registrants_are_right(self, *, interleaved: bool = False) -> None:
        """The short cut leaves the last registrant, though its connections may have gone meanwhile."""
        for (cluster, address), member in self.model.members.items():
            key = self.keys.member(member_key(cluster, address))
            stored = str(self.store.hget(key, "registrant"))
            assert stored in (member.registrant, self.registrants.get(key)) or interleaved
            member.registrant = stored
            self.registrants[key] = stored

    # -- help

    def now_ms(self) -> int:
        seconds, micros = self.store.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def lease(self, cluster: str, address: str) -> float | None:
        found: float | None = self.store.zscore(self.keys.leases, member_key(cluster, address))
        return found

    def is_lapsed(self, model: Model, key: tuple[str, str]) -> bool:
        return key in model.members and (model.members[key].lapsed or self.lease(*key) > self.now_ms())  # type: ignore[operator]

    def grow_older(self, cluster: str, address: str) -> None:
        """The last heartbeat was a second ago, so that the next one gives another lease."""
        key = member_key(cluster, address)
        member = self.model.members.get((cluster, address))
        if member is not None and member.owners and not member.lapsed:
            end = int(self.store.zincrby(self.keys.leases, -1000, key))
            self.store.set(self.keys.alive(key), end, pxat=end)

    def stored(self) -> Any:
        snapshot = tables(self.store, self.keys)
        brokers = {
            name: (
                broker.cluster,
                set(broker.clusters),
                broker.acting,
                broker.zone,
                dict(sorted(broker.addrs.items())),
                {
                    topic: tuple(int(part) for part in text.split(","))
                    for topic, text in broker.topics.items()
                },
                {topic: decode_mapping_info(info).epoch for topic, info in broker.mappings.items()},
            )
            for name, broker in snapshot.brokers.items()
        }
        members = {
            key: (one.version, one.ha, one.timeout_ms, one.filters) for key, one in snapshot.members.items()
        }
        return brokers, members


def is_expected(outcome: Any, expected: Any) -> bool:
    """Return whether a request came out as in the model; for a heartbeat a table of which a part is still to be written
    has no version yet, so that its broker sends it again."""
    return outcome == expected or (outcome == UNWRITTEN and expected is not None)


def in_any_order(model: Model, asked: dict[int, Asked]) -> Iterator[tuple[Model, dict[int, Any]]]:
    """Every model that these requests may lead to, with their outcomes."""
    pending = any(broker.pending for broker in model.brokers.values())
    if not asked and not pending:
        yield model, {}
    for number, one in asked.items():
        after = deepcopy(model)
        outcome = one.change(after)
        for last, outcomes in in_any_order(after, {i: rest for i, rest in asked.items() if i != number}):
            yield last, outcomes | {number: outcome}
    if pending:
        after = deepcopy(model)
        after.clear_write()
        yield from in_any_order(after, asked)


def tables_of(model: Model) -> Any:
    """The model's tables in the form of `RegistryMachine.stored`."""

    def key(member: ModelMember) -> str:
        return member_key(member.cluster, member.address)

    brokers = {
        name: (
            broker.cluster,
            broker.clusters,
            broker.acting,
            broker.zone,
            {number: key(member) for number, member in sorted(broker.addrs.items())},
            broker.topics,
            broker.mappings,
        )
        for name, broker in model.brokers.items()
    }
    members = {key(one): (one.version, one.ha, one.timeout_ms, one.filters) for one in model.members.values()}
    return brokers, members


def state_of(member: ModelMember) -> State:
    return member.serial, member.renewals, member.lapsed


def test_any_requests_in_any_order(each_store: EmbeddedStore) -> None:
    with connect(each_store.url) as store:
        run_state_machine_as_test(lambda: RegistryMachine(store), settings=PROFILE)  # type: ignore[arg-type]


@pytest.mark.parametrize("commit_max", [0, 100, 10_000])
def test_tables_in_the_smallest_slices(
    redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch, commit_max: int
) -> None:
    """Nearly every table comes in several slices, and every large one claims its name first."""
    monkeypatch.setattr("registry.queue_data.slices.TOPICS_MAX", 2)
    monkeypatch.setattr("registry.queue_data.slices.MAPPINGS_MAX", 1)
    monkeypatch.setattr("registry.removal.CLEAN_MAX", 1)
    monkeypatch.setattr("registry.registration.write.COMMIT_MAX_BYTES", commit_max)
    run_state_machine_as_test(lambda: RegistryMachine(redis), settings=PROFILE)  # type: ignore[arg-type]
