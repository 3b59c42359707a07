"""Brokers, their members and leases, and what operators put over them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from metrics import catalogue as metrics
from metrics.samples import Sample, named
from registry.clock import TIME, unix_ms
from registry.keys import Keys
from registry.members import Broker, LeaseClock, Member, broker_names, brokers, lease_clock
from registry.plans import Batch, Plan, call

__all__ = ["BROKERS_MOST", "MEMBERS_MOST", "read"]

BROKERS_MOST: Final = 1000
MEMBERS_MOST: Final = 3000
"""Broker names, and members of them all, beyond which none has series of its own."""
NAMES_AT_ONCE: Final = 500
MASTER: Final = 0


class _Drain(msgspec.Struct, frozen=True):
    until_ms: int | None = None


def read(keys: Keys) -> Plan[list[Sample]]:
    """Return what the store says of its brokers now."""
    names = yield from broker_names(keys)
    found = yield from brokers(keys, names)
    clock = yield from lease_clock(keys)
    drained = yield from _drained(keys)
    kv = yield from _kv_keys(keys)
    samples = [*_clusters(found, drained), *_leases(found, clock), *kv]
    if len(found) <= BROKERS_MOST and sum(len(broker.members) for broker in found) <= MEMBERS_MOST:
        topics = yield from _topic_counts(keys, found)
        samples += _each(found, drained, topics)
    return samples


def _drained(keys: Keys) -> Plan[frozenset[str]]:
    """Return the names of drained brokers; what cannot be read is a drain for routes, too."""
    time, texts = yield Batch((TIME, call("HGETALL", keys.drains)))
    now_ms = unix_ms(time)
    ends = {name: _end_of(text) for name, text in texts.items()}
    return frozenset(name for name, end in ends.items() if end is None or end > now_ms)


def _end_of(text: str) -> int | None:
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=_Drain).until_ms
    except msgspec.MsgspecError:
        return None


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


def _clusters(found: Sequence[Broker], drained: frozenset[str]) -> Iterator[Sample]:
    clusters = {cluster for broker in found for cluster in broker.clusters}
    masters, slaves, without, drains = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for broker in found:
        ids = [member.id for member in broker.members if _lives(member)]
        masters[broker.cluster] += ids.count(MASTER)
        slaves[broker.cluster] += len(ids) - ids.count(MASTER)
        without[broker.cluster] += bool(ids) and MASTER not in ids
        drains[broker.cluster] += broker.name in drained
    yield Sample(metrics.CLUSTERS, (), len(clusters))
    for role, counted in (("master", masters), ("slave", slaves)):
        for cluster, value in _by_cluster(clusters, counted):
            yield Sample(metrics.ACTIVE_BROKERS, (cluster, role), value)
    for metric, counted in ((metrics.BROKERS_WITHOUT_MASTER, without), (metrics.DRAINED_BROKERS, drains)):
        for cluster, value in _by_cluster(clusters, counted):
            yield Sample(metric, (cluster,), value)


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


def _each(found: Sequence[Broker], drained: frozenset[str], topics: dict[str, int]) -> Iterator[Sample]:
    for broker in found:
        for member in broker.members:
            labels = member.cluster, broker.name, str(member.id)
            yield Sample(metrics.BROKER_UP, labels, _lives(member))
            yield Sample(metrics.BROKER_HEARTBEAT_AGE, labels, max(member.lease.age_ms, 0) / 1000)
        labels_of_name = broker.cluster, broker.name
        yield Sample(metrics.BROKER_WRITE_WIPED, labels_of_name, broker.name in drained)
        yield Sample(metrics.BROKER_TOPICS, labels_of_name, topics.get(broker.name, 0))


def _lives(member: Member) -> bool:
    return member.lease.state != "overdue"
