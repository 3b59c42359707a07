"""A random history: brokers that register again and again, and all that others do to their tables meanwhile."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import ORDER_TOPIC_CONFIG, Keys, member_key
from registry.kv import put
from registry.ownership import UNGUARDED, Claimant
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.registration.heartbeat import renew_lease
from registry.removal import release_owner, run_deferred, unregister
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import V4, V5, mapping_info
from tests.registry.stored import Store
from tests.registry.two_ways.asked import Asked
from tests.registry.two_ways.sides import Answer, TwoWays
from tests.registry.world import CLAIMANTS

QUEUES: Final = ("8,8,6,0", "4,4,6,1", "8,8,4,2", "2,2,7,3", "16,16,6,0")
FEW: Final = tuple(f"T{number}" for number in range(12))
MANY: Final = tuple(f"a-topic-with-a-usual-name-{number:05}" for number in range(1300))
TIMEOUTS_MS: Final = (40_000_000, 60_000_000)
OWNERS: Final = ("w1/1", "w1/1", "w1/1", "w1/2", "w2/1", None)
BEGINNINGS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "b1", "number": 0, "at": "127.1.0.1:10911"},
    {"name": "b2", "number": 0, "at": "127.1.0.2:10911"},
    {"name": "b3", "number": 0, "at": "127.1.0.3:10911", "cluster": "c:2"},
    {"name": "b1", "number": 1, "at": "127.1.0.4:10911"},
    {"name": "b2", "number": 2, "at": "127.1.0.5:10911", "acting": True},
    {"name": "b1", "number": 0, "at": "127.1.0.1:10911", "cluster": "c:2"},
    {"name": "b3", "number": 0, "at": "127.1.0.6:10911", "cluster": "c:2"},
)
"""Three masters, two slaves, a master's registration with another cluster, and one that takes the place of another."""
MASTERS: Final = 3


@dataclass
class Broker:
    """What a broker says, and how."""

    said: dict[str, Any]
    owner: str | None = "w1/1"
    spaced: bool = False
    claimant: Claimant = UNGUARDED
    stamp: int = 0
    topics: dict[str, str] = field(default_factory=dict)

    @property
    def member(self) -> str:
        return member_key(self.said.get("cluster", "c1"), self.said["at"])

    def asked(self, worker: int = 0, *, topics: dict[str, str] | None = None, deletes: bool = False) -> Asked:
        self.stamp += 1
        said = self.said | {"topics": dict(self.topics if topics is None else topics), "stamp": self.stamp}
        return Asked(said, self.owner, worker, deletes, self.spaced, self.claimant)


class History:
    """`seed` decides all of it."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self._dice = Random(seed)
        self.is_large = self._dice.random() < 0.04
        self.limits = self._limits()
        self._names = MANY if self.is_large else FEW[: self.limits.max_topics + 1]
        self._is_damaged = self._dice.random() < 0.3
        self._brokers = [Broker({**said, "version": 1, "timeout_ms": TIMEOUTS_MS[0]}) for said in BEGINNINGS]
        self._claimants = CLAIMANTS if self._dice.random() < 0.2 else (UNGUARDED,)
        for broker in self._brokers:
            broker.claimant = self._dice.choice(self._claimants)
            broker.topics = self._table(len(self._names) // 3)
        self.steps = 0

    async def play(self, both: TwoWays, steps: int) -> None:
        """Do so many steps. Raises AssertionError."""
        self._both = both
        while self.steps < steps:
            (step,) = self._dice.choices([*STEPS], [*STEPS.values()])
            self.steps += 1
            if self._dice.random() < 0.3:
                both.grow_old()
            await step(self)
        if not self._is_damaged:
            both.check()

    def _limits(self) -> Limits:
        if self.is_large or self._dice.random() < 0.5:
            return DEFAULT_LIMITS
        few = self._dice.randint(6, 10)
        return replace(
            DEFAULT_LIMITS,
            max_topics=few,
            max_topics_of_broker=few - self._dice.randint(0, 2),
            max_percent_of_host=100,  # a share is estimated by a sample
        )

    # -- registrations

    async def register(self) -> None:
        """One broker registers, changed or not."""
        broker = self._broker()
        before = dict(broker.said), dict(broker.topics), broker.owner, broker.spaced
        asked = self._changed(broker, worker=int(self._dice.random() < 0.08))
        (answer,) = await self._both.register(asked)
        if is_refused(answer) and (self.is_large or self._dice.random() < 0.8):
            broker.said, broker.topics, broker.owner, broker.spaced = before
            self.fewer_topics(broker)

    async def register_at_once(self) -> None:
        """Several register at one moment, one of them twice now and then.

        They come one after the other where each needs several scripts, between which the others' may come: with static
        topics, at first, and near a limit."""
        brokers = self._dice.choices(self._brokers[: MASTERS + 1], k=self._dice.randint(2, 5))
        asked = [self._small_change(broker) for broker in brokers]
        alone = any("mappings" in broker.said or not self._is_registered(broker) for broker in brokers)
        if self.limits == DEFAULT_LIMITS and not alone:
            await self._both.register(*asked)
        else:
            for one in asked:
                await self._both.register(one)

    def _is_registered(self, broker: Broker) -> bool:
        return self._both.has(broker.member, broker.said["name"], broker.said["number"])

    def _broker(self) -> Broker:
        """Mostly a master: only they can go the straight way."""
        masters = self._dice.random() < 0.85
        return self._dice.choice(self._brokers[:MASTERS] if masters else self._brokers[MASTERS:])

    def _changed(self, broker: Broker, worker: int) -> Asked:
        if self._dice.random() < 0.6:
            return self._small_change(broker, worker)
        (change,) = self._dice.choices([*CHANGES], [*CHANGES.values()])
        changed = change(self, broker)
        if self._dice.random() < 0.7:
            broker.said["version"] += 1
        return changed or broker.asked(worker)

    def _small_change(self, broker: Broker, worker: int = 0) -> Asked:
        """Topics, or none of them, and mostly another version."""
        if self._dice.random() < 0.9:
            broker.said["version"] += 1
        some = self._dice.sample(self._names, self._dice.choice((0, 1, 1, 1, 2, 3, 20 % len(self._names))))
        changed = {topic: self._dice.choice(QUEUES) for topic in some}
        if self._dice.random() < 0.5:  # topics that it has
            changed = {topic: text for topic, text in changed.items() if topic in broker.topics}
        broker.topics |= changed
        if changed and self._dice.random() < 0.4:
            return broker.asked(worker, topics=changed)  # an incremental registration
        return broker.asked(worker)

    def nothing(self, broker: Broker) -> None:
        broker.said["version"] -= 1

    def fewer_topics(self, broker: Broker) -> None:
        for topic in self._dice.sample([*broker.topics], min(2, len(broker.topics))):
            del broker.topics[topic]

    def other_table(self, broker: Broker) -> None:
        broker.topics = self._table(self._dice.randint(0, len(self._names)))

    def topics_that_are_missing_go(self, broker: Broker) -> Asked:
        self.fewer_topics(broker)
        return broker.asked(deletes=True)

    def other_header(self, broker: Broker) -> None:
        name, values = self._dice.choice(OF_HEADER)
        broker.said[name] = self._dice.choice(values)

    def other_layout(self, broker: Broker) -> None:
        broker.spaced = not broker.spaced

    def broken_body(self, broker: Broker) -> Asked:
        return dataclasses.replace(broker.asked(), said=broker.said | {"cut": 5})

    def static_topics(self, broker: Broker) -> None:
        topics = self._dice.sample(FEW, self._dice.choice((0, 1, 2)))
        broker.said.pop("mappings", None)
        if topics:
            broker.said["mappings"] = [
                mapping_info(one, broker.said["name"], self._dice.randint(1, 2)) for one in topics
            ]

    def other_state_version(self, broker: Broker) -> None:
        broker.said["state"] = self._dice.randint(0, 1)

    def other_connection(self, broker: Broker) -> None:
        broker.owner = self._dice.choice(OWNERS)

    def other_claimant(self, broker: Broker) -> None:
        broker.claimant = self._dice.choice(self._claimants)

    def other_id(self, broker: Broker) -> None:
        """A master becomes a slave, or a slave its master."""
        if broker.said["name"] != "b3":
            broker.said["number"] = self._dice.choice((0, 0, 1, 2))

    def other_name(self, broker: Broker) -> None:
        broker.said["name"] = self._dice.choice(("b1", "b2", "b4"))

    # -- what others do

    async def unregister(self) -> None:
        said = self._broker().said
        cluster, name, number = said.get("cluster", "c1"), said["name"], str(said["number"])
        self._both.each(lambda keys, by: unregister(keys, cluster, said["at"], name, number, by))

    async def lapse(self) -> None:
        """The next step may be the member's own, or another that notices."""
        self._both.lapse(self._broker().member)

    async def expire(self) -> None:
        self._both.expire()

    async def heartbeat(self) -> None:
        said = self._broker().said
        cluster = said.get("cluster", "c1")
        self._both.each(lambda keys, by: renew_lease(keys, cluster, said["at"], by))

    async def rewrite(self) -> None:
        name, rewrite = self._broker().said["name"], self._dice.choice((wipe_write_perm, add_write_perm))
        self._both.each(lambda keys, by: rewrite(keys, name, by))

    async def delete_topic(self) -> None:
        topic, cluster = self._dice.choice(self._names), self._dice.choice(("", "", "c1"))
        self._both.each(lambda keys, by: delete_topic(keys, topic, cluster, by))

    async def set_topic(self) -> None:
        topic, name = self._dice.choice(self._names), self._broker().said["name"]
        self._both.each(lambda keys, by: register_topic(keys, topic, [QueueData(name, 1, 1, 6, 0)], by))

    async def order(self) -> None:
        value = f"b1:{self._dice.randint(1, 2)}"
        self._both.each(lambda keys, by: put(keys, ORDER_TOPIC_CONFIG, "T1", value, by))

    async def clean_up(self) -> None:
        self._both.each(lambda keys, by: run_deferred(keys, by))

    async def close_connection(self) -> None:
        broker = self._broker()
        cluster, at, owner = broker.said.get("cluster", "c1"), broker.said["at"], broker.owner or "w1/1"
        self._both.each(lambda keys, _: release_owner(keys, cluster, at, owner))

    async def damage(self) -> None:
        """A key of another type, or a time-out that is none; the broker's next registration mends it."""
        if not self._is_damaged:
            return
        self._both.expire()  # which would meet the key, and leave it to a walk
        broker = self._brokers[self._dice.randrange(MASTERS)]
        damage = self._dice.choice((no_hash, no_entry, no_timeout))
        self._both.by_hand(lambda store, keys: damage(store, keys, broker))
        await self._both.register(self._small_change(broker))

    def _table(self, most: int) -> dict[str, str]:
        usual = self._dice.choice(QUEUES)
        names = self._dice.sample(self._names, most)
        return {name: usual if self._dice.random() < 0.8 else self._dice.choice(QUEUES) for name in names}


def no_hash(store: Store, keys: Keys, broker: Broker) -> None:
    store.delete(keys.member(broker.member))
    store.set(keys.member(broker.member), "no hash")


def no_entry(store: Store, keys: Keys, broker: Broker) -> None:
    store.delete(keys.broker(broker.said["name"]))
    store.set(keys.broker(broker.said["name"]), "no hash")


def no_timeout(store: Store, keys: Keys, broker: Broker) -> None:
    if store.exists(keys.member(broker.member)):
        store.hset(keys.member(broker.member), "timeout", "long")


def is_refused(answer: Answer) -> bool:
    return answer.split()[0].endswith(":") or answer.startswith("conflict")


OF_HEADER: Final = (
    ("ha", (None, "127.1.0.9:10912")),
    ("zone", (None, "z1")),
    ("acting", (None, False, True)),
    ("timeout_ms", TIMEOUTS_MS),
    ("header", (V5, V5, V4, 36)),
    ("compressed", (False, False, True)),
    ("filters", ((), ("f:1",))),
)
CHANGES: Final[dict[Callable[[History, Broker], Asked | None], int]] = {
    History.nothing: 6,
    History.fewer_topics: 3,
    History.other_table: 2,
    History.topics_that_are_missing_go: 1,
    History.other_header: 3,
    History.other_layout: 1,
    History.broken_body: 1,
    History.static_topics: 2,
    History.other_state_version: 1,
    History.other_connection: 2,
    History.other_claimant: 1,
    History.other_id: 1,
    History.other_name: 1,
}
STEPS: Final[dict[Any, int]] = {
    History.register: 70,
    History.register_at_once: 12,
    History.unregister: 1,
    History.lapse: 2,
    History.expire: 1,
    History.heartbeat: 1,
    History.rewrite: 2,
    History.delete_topic: 2,
    History.set_topic: 2,
    History.order: 1,
    History.clean_up: 1,
    History.close_connection: 2,
    History.damage: 1,
}
