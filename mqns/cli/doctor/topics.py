"""Checks of topics: permissions, masters, queues and their order configuration."""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final

from mqns.cli.doctor.brokers import masterless
from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity, counted, named
from mqns.cli.shell import arguments, command_line
from mqns.names import AUTO_CREATE_TOPIC, MASTER_ID, ORDER_TOPIC_CONFIG, RETRY_PREFIX
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.route import QueueData, TopicRouteData

WIPED_MIN_TOPICS: Final = 2
"""A broker with fewer topics, all without write permission, is not reported as wiped."""
SYSTEM_TOPICS: Final = frozenset(
    {
        AUTO_CREATE_TOPIC,
        "BenchmarkTest",
        "CHECKPOINT_TOPIC",
        "OFFSET_MOVED_EVENT",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "SCHEDULE_TOPIC_XXXX",
        "SELF_TEST_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)
SYSTEM_PREFIXES: Final = (RETRY_PREFIX, "%DLQ%", "rmq_sys_")
Fault = Callable[[TopicRouteData, Set[str]], str | None]
"""Takes a route and the brokers that have a finding of their own; returns the fault of the topic, or None.

Topics with an equal fault share a finding."""


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings of all checks of topics."""
    yield from _wiped(facts)
    for fault, severity, rule, text, advice in _RULES:
        yield from _faults(facts, fault, severity, rule, text, advice)
    yield from _order(facts)
    yield from _auto_create(facts)


def is_system(server: NameServerFacts, topic: str) -> bool:
    """Return whether a topic is one that brokers create for themselves."""
    return (
        topic in SYSTEM_TOPICS
        or topic.startswith(SYSTEM_PREFIXES)
        or topic in server.info.broker_addr_table
        or topic.removesuffix("_REPLY_TOPIC") in server.info.cluster_addr_table
    )


def _faults(
    facts: Facts, fault: Fault, severity: Severity, rule: str, text: str, advice: str
) -> Iterator[Finding]:
    """Yield a finding for each fault and set of name servers, with all its topics."""
    where: dict[tuple[str, str], list[str]] = {}
    for server in facts.reachable:
        explained = masterless(server) | wiped(server) | set(server.drains or ())
        for topic, route in server.routes.items():
            fault_text = None if is_system(server, topic) else fault(route, explained)
            if fault_text is not None:
                where.setdefault((fault_text, topic), []).append(server.address)
    topics: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (fault_text, topic), servers in sorted(where.items()):
        topics.setdefault((fault_text, tuple(servers)), []).append(topic)
    for (fault_text, at), names in topics.items():
        summary = text.format(topics=f"{counted(len(names), 'topic')} ({named(names)})", fault=fault_text)
        yield Finding(severity, rule, summary, at, tuple(names), advice)


def _not_writable(route: TopicRouteData, explained: Set[str]) -> str | None:
    queues = _queues(route)
    masters = {data.broker_name for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    writable = {name for name, data in queues.items() if data.perm & PERM_WRITE and data.write_queue_nums > 0}
    return None if not queues or writable & masters or set(queues) <= explained else ""


def _not_readable(route: TopicRouteData, explained: Set[str]) -> str | None:
    queues = _queues(route).values()
    readable = any(data.perm & PERM_READ and data.read_queue_nums > 0 for data in queues)
    return None if readable or not queues else ""


def _read_fewer(route: TopicRouteData, explained: Set[str]) -> str | None:
    fewer = [
        name
        for name, d in _queues(route).items()
        if d.read_queue_nums < d.write_queue_nums and d.perm & PERM_WRITE
    ]
    return named(fewer) if fewer else None


def _uneven(route: TopicRouteData, explained: Set[str]) -> str | None:
    queues = _queues(route)
    if len({(data.read_queue_nums, data.write_queue_nums) for data in queues.values()}) < 2:
        return None
    return ", ".join(
        f"{name} {data.read_queue_nums}/{data.write_queue_nums}" for name, data in queues.items()
    )


def _dangling(route: TopicRouteData, explained: Set[str]) -> str | None:
    missing = sorted(set(_queues(route)) - {data.broker_name for data in route.broker_datas})
    return named(missing) if missing else None


_RULES: Final[tuple[tuple[Fault, Severity, str, str, str], ...]] = (
    (
        _not_writable,
        Severity.WARNING,
        "topic-not-writable",
        "{topics}: no master takes messages",
        "If that is not wanted: mqns permissions add BROKER, or mqadmin updateTopicPerm -p 6, or more write queues.",
    ),
    (
        _not_readable,
        Severity.WARNING,
        "topic-not-readable",
        "{topics}: no broker gives messages out",
        "If that is not wanted: mqadmin updateTopicPerm -p 6, or more read queues.",
    ),
    (
        _read_fewer,
        Severity.ERROR,
        "queues-never-read",
        "{topics}: fewer read queues than write queues at {fault}; what is sent to the others is not consumed",
        "mqadmin updateTopic with as many read queues (-r) as write queues (-w). To shrink a topic lower "
        "-w first, and -r "
        "when the last queues are empty.",
    ),
    (
        _uneven,
        Severity.WARNING,
        "queues-uneven",
        "{topics}: brokers have different numbers of queues, read/write: {fault}",
        "The broker with more queues gets more of the messages. If that is not wanted: mqadmin updateTopic -c CLUSTER.",
    ),
    (
        _dangling,
        Severity.ERROR,
        "queues-without-broker",
        "{topics}: queues of {fault}, of which no address is known",
        "mqns deleteTopic -t TOPIC -c CLUSTER; Java's name servers forget it when they are restarted, too.",
    ),
)


def wiped(server: NameServerFacts) -> set[str]:
    """Return the brokers without a writable topic."""
    perms_of: dict[str, list[int]] = {}
    for topic, route in server.routes.items():
        if not is_system(server, topic):
            for data in route.queue_datas:
                perms_of.setdefault(data.broker_name, []).append(data.perm)
    return {
        name
        for name, perms in perms_of.items()
        if len(perms) >= WIPED_MIN_TOPICS and not any(perm & PERM_WRITE for perm in perms) and any(perms)
    }


def _wiped(facts: Facts) -> Iterator[Finding]:
    """Yield brokers without a writable topic; where drains are known, those that are drained have their own finding."""
    where: dict[tuple[str, bool], list[str]] = {}
    for server in facts.reachable:
        drains = server.drains
        for name in wiped(server) - masterless(server) - set(drains or ()):
            where.setdefault((name, drains is None), []).append(server.address)
    for (name, may_be_drained), servers in sorted(where.items()):
        why, advice = "", ""
        if may_be_drained:
            why = ", or it is drained"
            undrain = command_line("mqns", "undrain", *arguments(name))
            advice = f". Whether a redis-namesrv drains it: mqns drains --http URL; to end that: {undrain}"
        yield Finding(
            Severity.WARNING,
            "broker-wiped",
            f"no topic of {name} can be written: its write permission was taken{why}",
            tuple(servers),
            (name,),
            "As long as it is being taken out of service, that is right. To give it back: "
            f"{command_line('mqns', 'permissions', 'add', *arguments(name))}{advice}",
        )


def _order(facts: Facts) -> Iterator[Finding]:
    """Yield faults of the order configuration, which has no effect while orderMessageEnable is off."""
    reporters: dict[tuple[Severity, str, str, str, str], list[str]] = {}
    for server in facts.reachable:
        entries = server.kv.get(ORDER_TOPIC_CONFIG, {})
        unused = (server.config or {}).get("orderMessageEnable", "").lower() == "false"
        severity = Severity.WARNING if unused else Severity.ERROR
        for topic, text in sorted(entries.items()):
            advice = command_line(
                "mqns", "updateOrderConf", "-t", topic, "-m", "put", "-v", "BROKER:QUEUES;BROKER:QUEUES"
            )
            for rule, what in _order_faults(server, topic, text):
                reporters.setdefault((severity, rule, what, topic, advice), []).append(server.address)
        if entries and unused:
            what = f"orderMessageEnable is off, so {ORDER_TOPIC_CONFIG} has no effect on {named(entries)}"
            advice = (
                "mqns config set orderMessageEnable true, if producers shall get a fixed order of queues."
            )
            key = (Severity.WARNING, "order-unused", what, ORDER_TOPIC_CONFIG, advice)
            reporters.setdefault(key, []).append(server.address)
    for (severity, rule, what, topic, advice), servers in reporters.items():
        yield Finding(severity, rule, what, tuple(servers), (topic,), advice)


def _order_faults(server: NameServerFacts, topic: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the violated rule and a text for each invalid entry of an order configuration."""
    route = server.routes.get(topic)
    queues = _queues(route) if route else {}
    for entry in filter(None, text.split(";")):
        name, colon, number = entry.partition(":")
        if not (colon and number.isascii() and number.isdecimal()):
            yield "order-malformed", f"{topic}: {entry!r} is not BROKER:QUEUES, and clients fail on it"
        elif server.lists_brokers and not server.names_broker(name):
            yield (
                "order-broker-unknown",
                f"{topic}: {name} is no broker, but producers are given {number} queues of it",
            )
        elif name in queues and int(number) > queues[name].write_queue_nums:
            there = queues[name].write_queue_nums
            yield "order-queues-unknown", f"{topic}: {number} queues of {name}, which has {there}"


def _auto_create(facts: Facts) -> Iterator[Finding]:
    where = tuple(
        server.address for server in facts.reachable if AUTO_CREATE_TOPIC in (server.topics or server.routes)
    )
    if where:
        names = {
            data.broker_name
            for s in facts.reachable
            if AUTO_CREATE_TOPIC in s.routes
            for data in s.routes[AUTO_CREATE_TOPIC].queue_datas
        }
        yield Finding(
            Severity.INFO,
            "topics-made-on-demand",
            f"{named(sorted(names)) or 'brokers'}: autoCreateTopicEnable is on, so a misspelt topic "
            "becomes a topic, and a new "
            "one gets queues only at brokers that happen to get its first messages",
            where,
            (AUTO_CREATE_TOPIC,),
            "Outside of development set autoCreateTopicEnable=false and make topics with mqadmin updateTopic.",
        )


def _queues(route: TopicRouteData) -> Mapping[str, QueueData]:
    return {data.broker_name: data for data in sorted(route.queue_datas, key=lambda data: data.broker_name)}
