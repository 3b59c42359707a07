"""Any requests with rounds between them: a late reader has, after a round, the tables of one that read all.

Both is what the tables say, wherever the newcomer began, whatever was lost, and in however many pieces rounds came.
"""

from contextlib import suppress
from itertools import count
from typing import Any

import pytest
import redis as redis_py
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from mqnamesrv.store import EmbeddedStore
from registry.drains import Drain, drain, undrain
from registry.errors import BrokerNotFound
from registry.events.replay import UNKNOWN, Tables, replay
from registry.keys import Keys, member_key
from registry.kv import delete, put
from registry.removal import run_deferred
from registry.settings import update
from registry.store.connect import connect
from tests.registry.brokers import origin
from tests.registry.checkpoints import SMALLEST, asked, paged_hashes, slices
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped
from tests.registry.stored import assert_replays, entries
from tests.registry.world import ADDRESSES, CLUSTERS, NAMES, TOPICS, Asked, expiring, requests

pytestmark = pytest.mark.timeout(3600)  # a time-out in the middle of a run would count as a finding
NIGHTLY = settings.get_current_profile_name() == "nightly"
PROFILE = settings(
    max_examples=1000 if NIGHTLY else 15,
    stateful_step_count=100 if NIGHTLY else 50,
    derandomize=not NIGHTLY,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
_namespaces = count(1)


class RoundsMachine(RuleBasedStateMachine):
    """`replays` are of readers that began at different places; the first has read all there ever was."""

    def __init__(self, store: redis_py.Redis) -> None:
        super().__init__()
        self.ns = Namespace(store, Keys(f"rounds-{next(_namespaces)}"))
        self.keys = self.ns.keys
        self.store: Any = store
        self.replays = [Tables()]
        self.seen = "-"
        self.open: list[Stepped[Any]] = []

    # -- requests

    @rule(asked=requests)
    def request(self, asked: Asked) -> None:
        Stepped(asked.plan(self.keys), self.store).finish()

    @rule(asked=requests)
    def begin_request(self, asked: Asked) -> None:
        """What it does comes between others' scripts."""
        if len(self.open) < 3:
            self.open.append(Stepped(asked.plan(self.keys), self.store))

    @rule(steps=st.integers(1, 4))
    def go_on_with_requests(self, steps: int) -> None:
        for plan in self.open:
            for _ in range(steps):
                if plan.request is not None:
                    plan.step()
        for plan in [plan for plan in self.open if plan.request is None]:
            plan.finish()
            self.open.remove(plan)

    @rule(cluster=st.sampled_from(CLUSTERS), address=st.sampled_from(ADDRESSES))
    def lapse(self, cluster: str, address: str) -> None:
        key = member_key(cluster, address)
        self.store.zadd(self.keys.leases, {key: self.ns.now_ms() - 1}, xx=True)
        self.store.delete(self.keys.alive(key))

    @rule()
    def expire(self) -> None:
        self.ns.run(expiring().plan(self.keys))

    @rule(
        namespace=st.sampled_from(("ORDER_TOPIC_CONFIG", "other")),
        key=st.sampled_from(TOPICS),
        value=st.sampled_from((None, "", "b1:4")),
    )
    def change_kv(self, namespace: str, key: str, value: str | None) -> None:
        if value is None:
            self.ns.run(delete(self.keys, namespace, key, origin()))
        else:
            self.ns.run(put(self.keys, namespace, key, value, origin()))

    @rule(option=st.sampled_from("ab"), value=st.sampled_from("12"))
    def change_settings(self, option: str, value: str) -> None:
        self.ns.run(update(self.keys, {option: value}, origin()))

    @rule(name=st.sampled_from(NAMES), owner=st.sampled_from(("alice", "bob", None)))
    def change_drain(self, name: str, owner: str | None) -> None:
        with suppress(BrokerNotFound):
            wanted = (
                drain(self.keys, name, Drain(owner, "r"), origin())
                if owner
                else undrain(self.keys, name, origin())
            )
            self.ns.run(wanted)

    @rule()
    def outage(self) -> None:
        self.ns.silent_for(10_000)
        self.ns.tick()

    # -- rounds and readers

    @rule(steps=st.integers(1, 6))
    def go_on_with_the_round(self, steps: int) -> None:
        self.ns.run(slices(self.keys, steps))

    @rule()
    def ask(self) -> None:
        asked(self.ns)

    @rule()
    def another_reader(self) -> None:
        if len(self.replays) < 6:
            self.replays.append(UNKNOWN)

    @rule(chance=st.integers(0, 3))
    def lose_the_stream(self, chance: int) -> None:
        if chance == 0:
            self.store.delete(self.keys.events)
            self.seen = "-"

    @invariant()
    def whole_tables_are_those_of_the_store(self) -> None:
        new = entries(self.store, self.keys, self.seen)
        self.replays = [replay(tables, new) for tables in self.replays]
        self.seen = str(new[-1].id) if new else self.seen
        for tables in self.replays:
            if tables.whole and self.store.exists(self.keys.events):
                assert_replays(self.store, self.keys, tables)

    def teardown(self) -> None:
        for plan in self.open:
            plan.finish()
        self.ns.run(run_deferred(self.keys, origin()))
        self.ns.run(slices(self.keys))
        self.ask()
        assert self.ns.run(slices(self.keys)).ended == 1
        self.another_reader()
        self.whole_tables_are_those_of_the_store()
        assert all(one.whole for one in self.replays[:-1])
        self.store.delete(*self.store.keys(f"{self.keys.prefix}*"))


def test_a_round_at_any_time(each_store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.events.checkpoint.SLICE", SMALLEST)
    with connect(each_store.url) as store, paged_hashes(store):
        run_state_machine_as_test(lambda: RoundsMachine(store), settings=PROFILE)  # type: ignore[arg-type]


def test_a_round_in_few_slices(redis: redis_py.Redis) -> None:
    run_state_machine_as_test(lambda: RoundsMachine(redis), settings=PROFILE)  # type: ignore[arg-type]
