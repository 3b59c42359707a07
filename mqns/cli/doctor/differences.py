"""Checks of name servers against each other: brokers, topics, queues and KV configuration.

A finding of the doctor tells of all that differs alike; what differs is also there thing by thing, for `mqns drift`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity, counted, named
from mqns.cli.shell import arguments, command_line
from mqns.names import ORDER_TOPIC_CONFIG
from rocketmq_remoting.route import QueueData

T = TypeVar("T")
Pattern: TypeAlias = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Fields of queue data that differ, with the value at each name server."""
FIELDS: Final[Mapping[str, Callable[[QueueData], int]]] = {
    "readQueueNums": lambda data: data.read_queue_nums,
    "writeQueueNums": lambda data: data.write_queue_nums,
    "perm": lambda data: data.perm,
    "topicSysFlag": lambda data: data.topic_sys_flag,
}
REGISTER_ADVICE: Final = (
    "A broker registers at each address of its own namesrvAddr: see that it names all of these, that the "
    "broker's machine "
    "reaches them, and what its broker.log says of registerBroker. Clients of these name servers do not see it."
)


class Difference(msgspec.Struct, frozen=True):
    """One thing that differs: the rule of its finding, what it is about, and what the name servers say of it."""

    kind: str
    subject: str
    what: str


class Group(msgspec.Struct, frozen=True):
    """A finding, and the differences that it tells of: (subject, what) of each."""

    finding: Finding
    things: tuple[tuple[str, str], ...]


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings of all differences between name servers that list their brokers; none with a single one."""
    yield from (group.finding for group in _groups(facts))


def differences(facts: Facts) -> Iterator[Difference]:
    """Yield them one by one."""
    for group in _groups(facts):
        yield from (Difference(group.finding.check, subject, what) for subject, what in group.things)


def _groups(facts: Facts) -> Iterator[Group]:
    servers = tuple(server for server in facts.reachable if server.lists_brokers)
    if len(servers) > 1:
        yield from _brokers(facts, servers)
        yield from _clusters(facts, servers)
        yield from _topics(servers)
        yield from _queues(servers)
        yield from _kv(servers)


def _brokers(facts: Facts, servers: Sequence[NameServerFacts]) -> Iterator[Group]:
    absent: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in facts.broker_names():
        ids = {number for server in servers for number in _addresses(server, name)}
        for number in sorted(ids):
            address_at = {server.address: _addresses(server, name).get(number) for server in servers}
            addresses = sorted({address for address in address_at.values() if address is not None})
            if len(addresses) > 1:
                yield _conflict(name, number, address_at)
            missing = tuple(server for server, address in address_at.items() if address is None)
            if missing:
                absent.setdefault((name, missing), []).extend(addresses)
    for (name, missing), addresses in absent.items():
        yield _absent(name, missing, addresses, servers)


def _conflict(name: str, number: int, address_at: Mapping[str, str | None]) -> Group:
    where = ", ".join(
        f"{address} at {server}" for server, address in address_at.items() if address is not None
    )
    finding = Finding(
        Severity.ERROR,
        "broker-conflict",
        f"{name} with id {number} is not the same everywhere: {where}",
        tuple(address_at),
        (name,),
        "Give one of them another brokerName or brokerId; if one has only moved, wait for the end of the old one's "
        "registration (120 s) and look again.",
    )
    return Group(finding, ((f"{name} with id {number}", where),))


def _absent(
    name: str, missing: tuple[str, ...], addresses: Sequence[str], servers: Sequence[NameServerFacts]
) -> Group:
    lost = sorted(
        {
            topic
            for server in servers
            if server.address in missing
            for topic in _others_topics(server, servers)
            if not server.names_broker(name) and name in _serving(topic, servers)
        }
    )
    therefore = f"; {counted(len(lost), 'topic')} unknown there because of it: {named(lost)}" if lost else ""
    what = f"not registered at {' and '.join(missing)}"
    finding = Finding(
        Severity.ERROR,
        "broker-missing",
        f"{name} ({named(addresses)}) is {what}{therefore}",
        missing,
        (name, *addresses),
        REGISTER_ADVICE,
    )
    return Group(finding, tuple((f"{name} {address}", what) for address in addresses))


def _clusters(facts: Facts, servers: Sequence[NameServerFacts]) -> Iterator[Group]:
    for name in facts.broker_names():
        tables = {server.address: server.info.broker_addr_table for server in servers}
        cluster_at = {address: table[name].cluster for address, table in tables.items() if name in table}
        if len(set(cluster_at.values())) > 1:
            where = ", ".join(f"{cluster} at {address}" for address, cluster in cluster_at.items())
            finding = Finding(
                Severity.ERROR,
                "broker-cluster-differs",
                f"{name} belongs to different clusters: {where}",
                tuple(cluster_at),
                (name,),
                "Give brokers of different clusters different names.",
            )
            yield Group(finding, ((name, where),))


def _topics(servers: Sequence[NameServerFacts]) -> Iterator[Group]:
    missing: dict[tuple[str, ...], list[str]] = {}
    listing = [server for server in servers if server.topics is not None]
    for topic in sorted({topic for server in listing for topic in server.topics or ()}):
        without = tuple(
            server.address
            for server in listing
            if topic not in (server.topics or ()) and _could_serve(server, topic, servers)
        )
        if without:
            missing.setdefault(without, []).append(topic)
    for without, topics in missing.items():
        what = f"unknown at {' and '.join(without)}, although a broker that has it is registered there"
        finding = Finding(
            Severity.ERROR,
            "topic-missing",
            f"{counted(len(topics), 'topic')} {what}: {named(topics)}",
            without,
            tuple(topics),
            "Clients that ask there get no route: update one topic of the broker, or restart it.",
        )
        yield Group(finding, tuple((topic, what) for topic in topics))


def _queues(servers: Sequence[NameServerFacts]) -> Iterator[Group]:
    absent: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    differing: dict[tuple[str, Pattern], list[str]] = {}
    for topic in sorted({topic for server in servers for topic in server.routes}):
        knowing = [server for server in servers if topic in server.routes]
        for broker in sorted(_serving(topic, servers)):
            queues_at = {server.address: _queue_data(server, topic, broker) for server in knowing}
            without = tuple(
                s.address for s in knowing if queues_at[s.address] is None and s.names_broker(broker)
            )
            if without:
                absent.setdefault((broker, without), []).append(topic)
            pattern = _pattern({address: data for address, data in queues_at.items() if data is not None})
            if pattern:
                differing.setdefault((broker, pattern), []).append(topic)
    yield from (_queues_missing(*key, topics) for key, topics in absent.items())
    yield from (_queues_differ(*key, topics) for key, topics in differing.items())


def _queues_missing(broker: str, without: tuple[str, ...], topics: Sequence[str]) -> Group:
    finding = Finding(
        Severity.ERROR,
        "queues-missing",
        f"routes at {' and '.join(without)} leave out {broker}, which is registered there, for "
        f"{counted(len(topics), 'topic')}: {named(topics)}",
        without,
        tuple(topics),
        "Clients that ask there do not use this broker. Update one of its topics, or restart it: then it registers "
        "with all again.",
    )
    what = f"left out of routes at {' and '.join(without)}, where the broker is registered"
    return Group(finding, tuple((f"{topic} of {broker}", what) for topic in topics))


def _queues_differ(broker: str, pattern: Pattern, topics: Sequence[str]) -> Group:
    queues = "; ".join(
        f"{field} " + ", ".join(f"{value} at {address}" for address, value in values)
        for field, values in pattern
    )
    finding = Finding(
        Severity.ERROR,
        "queues-differ",
        f"{broker} has different queues for {counted(len(topics), 'topic')} ({named(topics)}): {queues}",
        tuple(address for address, _ in pattern[0][1]),
        tuple(topics),
        _queues_advice(broker, [field for field, _ in pattern]),
    )
    return Group(finding, tuple((f"{topic} of {broker}", queues) for topic in topics))


def _queues_advice(broker: str, fields: Sequence[str]) -> str:
    if fields == ["perm"]:
        give = command_line("mqns", "permissions", "add", *arguments(broker))
        return f"The write permission was changed at some name servers only: with all of them in -n, {give} (or wipe)."
    return "Update the topic in the broker again (mqadmin updateTopic), so that it registers with all name servers."


def _kv(servers: Sequence[NameServerFacts]) -> Iterator[Group]:
    for namespace in sorted({namespace for server in servers for namespace in server.kv}):
        having = [server for server in servers if namespace in server.kv]
        severity = Severity.ERROR if namespace == ORDER_TOPIC_CONFIG else Severity.WARNING
        for key in sorted({key for server in having for key in server.kv[namespace]}):
            value_at = {server.address: server.kv[namespace].get(key) for server in having}
            if len(set(value_at.values())) > 1:
                values = ", ".join(
                    f"{'nothing' if value is None else repr(value)} at {address}"
                    for address, value in value_at.items()
                )
                subject = f"{namespace} {key}"
                set_all = command_line("mqns", "kv", "set", *arguments(namespace, key, "VALUE"))
                finding = Finding(
                    severity,
                    "kv-differs",
                    f"{subject}: {values}",
                    tuple(value_at),
                    (subject,),
                    f"Set it in all at once: {set_all}",
                )
                yield Group(finding, ((subject, values),))


def _addresses(server: NameServerFacts, name: str) -> dict[int, str]:
    data = server.info.broker_addr_table.get(name)
    return {} if data is None else data.broker_addrs


def _serving(topic: str, servers: Sequence[NameServerFacts]) -> set[str]:
    """Return the broker names that serve a topic at any name server."""
    return {
        data.broker_name
        for server in servers
        if topic in server.routes
        for data in server.routes[topic].queue_datas
    }


def _could_serve(server: NameServerFacts, topic: str, servers: Sequence[NameServerFacts]) -> bool:
    """Return whether a broker that serves a topic elsewhere is registered at a name server."""
    return any(map(server.names_broker, _serving(topic, servers)))


def _others_topics(server: NameServerFacts, servers: Sequence[NameServerFacts]) -> set[str]:
    """Return the topics that a name server does not have, and has no broker for."""
    if server.topics is None:
        return set()
    others = {topic for other in servers for topic in other.routes} - server.topics
    return {topic for topic in others if not _could_serve(server, topic, servers)}


def _queue_data(server: NameServerFacts, topic: str, broker: str) -> QueueData | None:
    return next((data for data in server.routes[topic].queue_datas if data.broker_name == broker), None)


def _pattern(queues_at: Mapping[str, QueueData]) -> Pattern:
    """Return the fields that differ, with each name server's value."""
    return tuple(
        (field, tuple((address, read(data)) for address, data in queues_at.items()))
        for field, read in FIELDS.items()
        if len({read(data) for data in queues_at.values()}) > 1
    )
