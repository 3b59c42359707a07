"""What the model test asks of the registry, drawn from a world small enough for everything to collide."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import strategies as st

from registry.errors import BrokerBusy, NotOwner, RegistrationRefused
from registry.keys import Keys
from registry.ownership import UNGUARDED, Claimant
from registry.plans import Plan
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.registration.heartbeat import renew_lease
from registry.registration.register import Registration, register
from registry.removal import expire, unregister
from registry.repair.walk import Walk
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.registration import decode_register_broker_body
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import V4, V5, mapping_info, origin, registration
from tests.registry.model import Model, Owned, Queues, SingleTopic

NAMES = ("b1", "b2")
CLUSTERS = ("c1", "c:2")
ADDRESSES = ("127.1.0.1:10911", "127.1.0.2:10911", "127.1.0.3:10911")
TOPICS = ("T1", "T2", "T3", "T4")
QUEUES = ("8,8,6,0", "4,4,6,1", "8,8,4,2", "2,2,7,3")
OWNERS = ("w1/1", "w1/2", "w2/1")
BUSY = "busy"  # it was not done
OWNED = "owned"  # it is for another
CLAIMANTS = (
    Claimant("host:127.1.0.1", guard=True),
    Claimant("host:127.1.0.2", guard=True),
    Claimant("principal:p1", guard=True),
    Claimant("principal:p2", guard=True),
    Claimant("principal:p2", guard=True, claims=False),
    Claimant("principal:p2", guard=True, claims=False, home="host:127.1.0.1"),
)
Outcome = Any  # of a request, in a form that both sides can give


@dataclass(frozen=True)
class Asked:
    """One request: as a plan for the registry, and as a change of the model with the outcome it must have."""

    text: str
    plan: Callable[[Keys], Plan[Outcome]]
    change: Callable[[Model], Outcome]


def registering(
    said: Registration, owner: str | None, delete_missing: bool, claimant: Claimant = UNGUARDED
) -> Asked:
    body = decode_register_broker_body(said.body, version=said.version, compressed=said.compressed, now_ms=0)

    def plan(keys: Keys) -> Plan[Outcome]:
        try:
            registration = yield from register(
                keys,
                said,
                origin(),
                owner=owner,
                host=claimant.registrant.partition(":")[2],
                delete_missing=delete_missing,
                claimant=claimant,
            )
        except RegistrationRefused:
            return "single"
        except BrokerBusy:
            return BUSY
        except NotOwner:
            return OWNED
        return (registration.master_address, registration.ha_address, registration.refused)

    def change(model: Model, records_lapses: bool = True) -> Outcome:
        try:
            registration = model.register(
                said,
                body,
                owner=owner,
                delete_missing=delete_missing,
                records_lapses=records_lapses,
                claimant=claimant,
            )
        except SingleTopic:
            return "single"
        except Owned:
            return OWNED
        return (registration.master, registration.ha, registration.refused)

    topics = {topic: str(config.perm) for topic, config in body.topics.items()}
    text = f"register {said.name}/{said.id} {said.cluster} {said.address} {topics} {body.data_version.text()}"
    return Asked(f"{text} acting={said.acting} by {claimant}", plan, change)


def guarded(asked: Asked) -> Asked:
    """The same request, with the outcome of one that is for another."""

    def plan(keys: Keys) -> Plan[Outcome]:
        try:
            return (yield from asked.plan(keys))
        except NotOwner:
            return OWNED

    def change(model: Model) -> Outcome:
        try:
            return asked.change(model)
        except Owned:
            return OWNED

    return Asked(asked.text, plan, change)


def heartbeat_of(cluster: str, address: str, claimant: Claimant = UNGUARDED) -> Asked:
    def plan(keys: Keys) -> Plan[Outcome]:
        renewal = yield from renew_lease(keys, cluster, address, origin(), claimant=claimant)
        return renewal.version.text() if renewal.version else None

    text = f"heartbeat {cluster} {address} by {claimant}"
    return guarded(Asked(text, plan, lambda model: model.heartbeat(cluster, address, claimant)))


def unregistering(
    cluster: str, address: str, name: str, number: int, claimant: Claimant = UNGUARDED
) -> Asked:
    def plan(keys: Keys) -> Plan[Outcome]:
        yield from unregister(keys, cluster, address, name, str(number), origin(), claimant=claimant)

    text = f"unregister {name} {cluster} {address} by {claimant}"
    return guarded(Asked(text, plan, lambda model: model.unregister(cluster, address, name, claimant)))


def expiring() -> Asked:
    def plan(keys: Keys) -> Plan[Outcome]:
        yield from expire(keys, origin())

    return Asked("expire", plan, lambda model: model.expire())


def walking() -> Asked:
    """A walk over the tables, which are whole: it repairs nothing, whatever happens meanwhile."""

    def plan(keys: Keys) -> Plan[Outcome]:
        walk = Walk(keys, origin(), "w", timeout_ms=600_000, rows_per_s=inf)
        return (yield from walk.run()).total

    return Asked("walk", plan, lambda model: 0)


def rewriting(name: str, wipe: bool) -> Asked:
    def plan(keys: Keys) -> Plan[Outcome]:
        done = yield from (wipe_write_perm if wipe else add_write_perm)(keys, name, origin())
        return done.count

    return Asked(
        f"{'wipe' if wipe else 'restore'} {name}", plan, lambda model: model.rewrite(name, wipe=wipe)
    )


def deleting(topic: str, cluster: str) -> Asked:
    def plan(keys: Keys) -> Plan[Outcome]:
        yield from delete_topic(keys, topic, cluster, origin())

    return Asked(f"delete {topic} {cluster}", plan, lambda model: model.delete_topic(topic, cluster))


def setting(topic: str, rows: list[tuple[str, str]], claimant: Claimant = UNGUARDED) -> Asked:
    parsed: list[tuple[str, Queues]] = [(name, queues(text)) for name, text in rows]

    def plan(keys: Keys) -> Plan[Outcome]:
        yield from register_topic(
            keys,
            topic,
            [QueueData(name, *numbers) for name, numbers in parsed],
            origin(),
            claimant=claimant,
        )

    text = f"set {topic} {rows} by {claimant}"
    return guarded(Asked(text, plan, lambda model: model.register_topic(topic, parsed, claimant)))


def queues(text: str) -> Queues:
    read, write, perm, flag = (int(part) for part in text.split(","))
    return read, write, perm, flag


tables = st.dictionaries(st.sampled_from(TOPICS), st.sampled_from(QUEUES), max_size=4)
claimants = st.sampled_from((UNGUARDED, UNGUARDED, *CLAIMANTS))
said = (
    st.builds(
        registration,
        st.sampled_from(NAMES),
        st.integers(0, 2),
        tables,
        cluster=st.sampled_from(CLUSTERS),
        at=st.sampled_from(ADDRESSES),
        version=st.integers(1, 2),
        state=st.integers(0, 1),
        ha=st.sampled_from((None, "127.1.0.9:10912")),
        zone=st.sampled_from((None, "z1")),
        acting=st.sampled_from((None, False, True)),
        filters=st.sampled_from((None, (), ("f:1",))),
        mappings=st.lists(
            st.builds(mapping_info, st.sampled_from(TOPICS), st.sampled_from(NAMES), st.integers(1, 2)),
            max_size=2,
        ),
        stamp=st.integers(0, 9),
        timeout_ms=st.sampled_from((600_000, 900_000)),
        header=st.sampled_from((V4, V5, V5)),
        compressed=st.booleans(),
    ),
    st.sampled_from((None, *OWNERS)),
    st.sampled_from((False, False, False, True)),
)
registrations = st.builds(registering, *said)
claims = st.builds(registering, *said, claimants)
member = st.sampled_from(CLUSTERS), st.sampled_from(ADDRESSES)
heartbeats = st.builds(heartbeat_of, *member)
removals = st.builds(unregistering, *member, st.sampled_from(NAMES), st.integers(0, 2))
rewrites = st.builds(rewriting, st.sampled_from((*NAMES, "none")), st.booleans())
deletions = st.builds(deleting, st.sampled_from(TOPICS), st.sampled_from(("", *CLUSTERS)))
of_topic = (
    st.sampled_from((*TOPICS, "T5")),
    st.lists(st.tuples(st.sampled_from((*NAMES, "none")), st.sampled_from(QUEUES)), max_size=3),
)
settings_of_topics = st.builds(setting, *of_topic)
guarded_heartbeats = st.builds(heartbeat_of, *member, claimants)
guarded_removals = st.builds(unregistering, *member, st.sampled_from(NAMES), st.integers(0, 2), claimants)
guarded_settings = st.builds(setting, *of_topic, claimants)
walks = st.builds(walking)
requests = st.one_of(
    registrations, registrations, heartbeats, removals, rewrites, deletions, settings_of_topics, walks
)
