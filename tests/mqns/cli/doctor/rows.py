"""Facts, written briefly."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mqns.cli.doctor.facts import Facts, NameServerFacts, Probe
from mqns.cli.doctor.findings import Finding
from rocketmq_remoting.cluster import ClusterInfo
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData

A, B, C = "10.9.0.1:9876", "10.9.0.2:9876", "10.9.0.3:9876"
Brokers = Mapping[str, Mapping[int, str]]
Queues = Mapping[str, Mapping[str, tuple[int, int, int]]]
"""topic -> broker name -> read queues, write queues, perm"""
Reported = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""severity, rule, where, subjects"""

ADDRESSES = {
    "broker-a": {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"},
    "broker-b": {0: "10.0.0.3:10911"},
}
QUEUES = {"TA": {"broker-a": (8, 8, 6), "broker-b": (8, 8, 6)}, "TB": {"broker-a": (4, 4, 6)}}


def server(
    address: str = A,
    brokers: Brokers = ADDRESSES,
    queues: Queues = QUEUES,
    *,
    cluster: str = "c1",
    acting: bool = False,
    clusters: Mapping[str, Iterable[str]] | None = None,
    **more: Any,
) -> NameServerFacts:
    """What a healthy name server says of these."""
    table = {name: BrokerData(cluster, name, dict(addrs), acting) for name, addrs in brokers.items()}
    listed = {cluster: tuple(brokers)} if clusters is None else {c: tuple(n) for c, n in clusters.items()}
    routes = {topic: route(table, by_broker) for topic, by_broker in queues.items()}
    facts: dict[str, Any] = {
        "address": address,
        "ips": (address.partition(":")[0],),
        "version": "V5_5_0",
        "info": ClusterInfo(table, listed),
        "topics": frozenset(queues),
        "routes": routes,
        "config": {},
    }
    return NameServerFacts(**facts | more)


def route(table: Mapping[str, BrokerData], by_broker: Mapping[str, tuple[int, int, int]]) -> TopicRouteData:
    """A topic's route."""
    return TopicRouteData(
        tuple(table[name] for name in by_broker if name in table),
        tuple(QueueData(name, read, write, perm, 0) for name, (read, write, perm) in by_broker.items()),
    )


def probed(addresses: Iterable[str], failures: Mapping[str, str] | None = None) -> dict[str, Probe]:
    """Brokers that answer, but for those that fail."""
    failures = failures or {}
    return {
        address: Probe((address.rpartition(":")[0].strip("[]"),), failures.get(address))
        for address in addresses
    }


def reported(
    check: Callable[[Facts], Iterator[Finding]], *servers: NameServerFacts, **probes: Any
) -> list[Reported]:
    """What a check finds, in short."""
    return [
        (finding.severity, finding.check, finding.name_servers, finding.subjects)
        for finding in check(Facts(servers, **probes))
    ]


def without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Some entries left out."""
    return {key: value for key, value in mapping.items() if key not in keys}
