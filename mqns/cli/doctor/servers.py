"""Checks of the name servers: reachability, equal releases and options, clocks."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity

SLOW_S: Final = 1.0
CLOCK_S: Final = 1.0
"""Difference of clocks that is reported, beyond the error of the measurement."""
LOCAL_OPTIONS: Final = frozenset(
    {"bindAddress", "configStorePath", "configStorePathName", "kvConfigPath", "listenPort", "rocketmqHome"}
)
"""Options that differ between name servers by their nature."""
VISIBLE_OPTIONS: Final = frozenset(
    {
        "clusterTest",
        "deleteTopicWithBrokerRegistration",
        "enableAllTopicList",
        "enableTopicList",
        "needWaitForService",
        "notifyMinBrokerIdChanged",
        "orderMessageEnable",
        "productEnvName",
        "returnOrderTopicConfigToBroker",
        "supportActingMaster",
    }
)
"""Options that change responses to clients and brokers."""
HARMFUL_OPTIONS: Final = {
    "deleteTopicWithBrokerRegistration": (
        "a broker that registers one changed topic, or its topics in pieces, loses all its others here"
    ),
    "clusterTest": "topics that are unknown here are looked up in another cluster",
}


def check(facts: Facts) -> Iterator[Finding]:
    """All of them."""
    yield from _unreachable(facts)
    yield from _slow(facts)
    yield from _versions(facts)
    yield from _options(facts)
    yield from _harmful_options(facts)
    yield from _clocks(facts)


def _unreachable(facts: Facts) -> Iterator[Finding]:
    for server in facts.name_servers:
        if server.failure is not None:
            yield Finding(
                Severity.ERROR,
                "name-server-silent",
                server.failure,
                (server.address,),
                (server.address,),
                "Start it, or open the way to it, or take it out of every namesrvAddr: a client that chooses it "
                "waits in vain, "
                "and brokers cannot register there.",
            )


def _slow(facts: Facts) -> Iterator[Finding]:
    for server in facts.reachable:
        if server.answer_s > SLOW_S:
            yield Finding(
                Severity.WARNING,
                "name-server-slow",
                f"the first answer took {server.answer_s:.1f} s",
                (server.address,),
                (server.address,),
                "Clients wait 3 s for a route. See how busy its machine and the network are.",
            )


def _versions(facts: Facts) -> Iterator[Finding]:
    if len({server.version for server in facts.reachable}) > 1:
        yield Finding(
            Severity.WARNING,
            "name-server-versions",
            "different releases: " + _each(facts.reachable, lambda server: server.version),
            tuple(server.address for server in facts.reachable),
            tuple(sorted({server.version for server in facts.reachable})),
            "Requests that one release knows and another does not (acting masters, 217, 327, 901, 904) "
            "succeed by chance. "
            "Run one release.",
        )


def _options(facts: Facts) -> Iterator[Finding]:
    with_options = [server for server in facts.reachable if server.config is not None]
    for key in sorted({key for server in with_options for key in server.config or {}} - LOCAL_OPTIONS):
        having = [server for server in with_options if key in (server.config or {})]
        if len({_option(server, key) for server in having}) > 1:
            yield Finding(
                Severity.WARNING if key in VISIBLE_OPTIONS else Severity.INFO,
                "name-server-options",
                f"{key}: {_each(having, partial(_option, key=key))}",
                tuple(server.address for server in having),
                (key,),
                f"Give all the same value: mqns config set {key} VALUE",
            )


def _harmful_options(facts: Facts) -> Iterator[Finding]:
    for key, harm in HARMFUL_OPTIONS.items():
        where = tuple(s.address for s in facts.reachable if _option(s, key).lower() == "true")
        if where:
            yield Finding(
                Severity.WARNING,
                "option-harmful",
                f"{key} is on: {harm}",
                where,
                (key,),
                f"Unless that is wanted: mqns config set {key} false",
            )


def _clocks(facts: Facts) -> Iterator[Finding]:
    for server in facts.reachable:
        http = server.http
        if http is not None and abs(http.clock_ahead_s) > CLOCK_S + http.clock_within_s:
            word = "ahead of" if http.clock_ahead_s > 0 else "behind"
            yield Finding(
                Severity.WARNING,
                "clock-skew",
                f"its clock is {abs(http.clock_ahead_s):.1f} s {word} this machine's",
                (server.address,),
                (server.address,),
                "Let both follow the same time server (NTP): times in logs, events and data versions "
                "cannot be compared.",
            )


def _option(server: NameServerFacts, key: str) -> str:
    return (server.config or {}).get(key, "")


def _each(servers: Iterable[NameServerFacts], value: Callable[[NameServerFacts], str]) -> str:
    """`V4_9_7 at a:9876, V5_5_0 at b:9876 and c:9876`"""
    where: dict[str, list[str]] = {}
    for server in servers:
        where.setdefault(value(server), []).append(server.address)
    return ", ".join(f"{said} at {' and '.join(addresses)}" for said, addresses in where.items())
