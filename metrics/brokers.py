"""Brokers, their members and leases, and what operators put over them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from metrics import catalogue as metrics
from metrics.samples import Sample, named
from registry import gone_members, topic_counts
from registry.drains import DrainedBroker, drained_brokers, drained_names
from registry.gone_members import GoneMember
from registry.keys import Keys
from registry.members import Broker, LeaseClock, Member, broker_names, brokers, lease_clock
from registry.plans import Batch, Plan, call

__all__ = ["BROKERS_MOST", "MEMBERS_MOST", "read"]

BROKERS_MOST: Final = 1000
MEMBERS_MOST: Final = 3000
"""Broker names, and members of them all, beyond which none has series of its own."""
NAMES_AT_ONCE: Final = 500
MASTER: Final = 0
NO_CLUSTER: Final = ""
"""Where drained names count that no broker is registered under."""


def read(keys: Keys) -> Plan[list[Sample]]:
    """Return what the store says of its brokers now."""
    names = yield from broker_names(keys)
    found = yield from brokers(keys, names)
    clock = yield from lease_clock(keys)
    drained = yield from drained_brokers(keys, (yield from drained_names(keys)))
    kv = yield from _kv_keys(keys)
    samples = [*_clusters(found, drained), *_leases(found, clock), *kv]
    if len(found) <= BROKERS_MOST and sum(len(broker.members) for broker in found) <= MEMBERS_MOST:
        topics = yield from _topic_counts(keys, found)
        counts = yield from topic_counts.read(keys)
        wiped = {broker.name for broker in drained}.union(counts.wiped if counts else ())
        samples += _each(found, wiped, topics)
        samples += _gone((yield from gone_members.read(keys, clock.now_ms, found)))
    return samples


def _kv_keys(keys: Keys) -> Plan[list[Sample]]:
    namespaces = sorted((yield call("SMEMBERS", keys.kv_namespaces)))
    counts = (yield Batch(tuple(call("HLEN", keys.kv(name)) for name in namespaces))) if namespaces else []
    values = named(dict(zip(namespaces, counts, strict=True)), sum)
    return [Sample(metrics.KV_KEYS, (name,), value) for name, value in values.items()]


def _topic_counts(keys: Keys, found: Sequence[Broker]) -> Plan[dict[str, int]]:
    counts: dict[str, int] = {}
    for start in range(0, len(found), NAMES_AT_ONCE):
        names = [broker.name for broker in found[start : start + NAMES_AT_ONCE]]
        replies = yield Batch(tuple(call("HLEN", keys.topics_of(name)) for name in names))
        counts |= zip(names, replies, strict=True)
    return counts


def _clusters(found: Sequence[Broker], drained: Sequence[DrainedBroker]) -> Iterator[Sample]:
    clusters = {cluster for broker in found for cluster in broker.clusters}
    masters, slaves, without = Counter[str](), Counter[str](), Counter[str]()
    drains = Counter(broker.cluster or NO_CLUSTER for broker in drained)
    for broker in found:
        ids = [member.id for member in broker.members if _lives(member)]
        masters[broker.cluster] += ids.count(MASTER)
        slaves[broker.cluster] += len(ids) - ids.count(MASTER)
        without[broker.cluster] += bool(ids) and MASTER not in ids
    yield Sample(metrics.CLUSTERS, (), len(clusters))
    for role, counted in (("master", masters), ("slave", slaves)):
        for cluster, value in _by_cluster(clusters, counted):
            yield Sample(metrics.ACTIVE_BROKERS, (cluster, role), value)
    for cluster, value in _by_cluster(clusters, without):
        yield Sample(metrics.BROKERS_WITHOUT_MASTER, (cluster,), value)
    for cluster, value in _by_cluster(clusters | drains.keys(), drains):
        yield Sample(metrics.DRAINED_BROKERS, (cluster,), value)


def _by_cluster(clusters: set[str], counted: Counter[str]) -> Iterator[tuple[str, float]]:
    return iter(named({cluster: counted[cluster] for cluster in clusters}, sum).items())


def _leases(found: Sequence[Broker], clock: LeaseClock) -> Iterator[Sample]:
    overdue = (
        member.lease.now_ms - member.lease.kept_until_ms
        for broker in found
        for member in broker.members
        if member.lease.state == "overdue"
    )
    yield Sample(metrics.EXPIRY_LAG, (), max(overdue, default=0) / 1000)
    yield Sample(metrics.EXPIRY_HELD, (), (clock.hold_until_ms or 0) > clock.now_ms)


def _each(found: Sequence[Broker], wiped: set[str], topics: dict[str, int]) -> Iterator[Sample]:
    for broker in found:
        for member in broker.members:
            labels = member.cluster, broker.name, str(member.id)
            yield Sample(metrics.BROKER_UP, labels, _lives(member))
            yield Sample(metrics.BROKER_HEARTBEAT_AGE, labels, max(member.lease.age_ms, 0) / 1000)
        labels_of_name = broker.cluster, broker.name
        yield Sample(metrics.BROKER_WRITE_WIPED, labels_of_name, broker.name in wiped)
        yield Sample(metrics.BROKER_TOPICS, labels_of_name, topics.get(broker.name, 0))


def _gone(gone: Iterable[GoneMember]) -> Iterator[Sample]:
    for name, _ in gone:
        yield Sample(metrics.BROKER_UP, (name.cluster, name.broker, name.id), 0)


def _lives(member: Member) -> bool:
    return member.lease.state != "overdue"
