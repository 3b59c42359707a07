"""Checks of the name servers: reachability, equal releases and options, clocks."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from mqns.cli.doctor.facts import Facts, NameServerFacts, Port
from mqns.cli.doctor.findings import Finding, Severity
from mqns.cli.shell import arguments, command_line

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

SILENT: Final = {
    Port.CLOSED: (
        "{}",
        "No process listens there, its machine is down, or a firewall is between. A client that chooses it waits in "
        "vain, and brokers cannot register there.",
        "Start it, or open the way to it, or take it out of every namesrvAddr.",
    ),
    Port.MUTE: (
        "the port is open, and nothing came that answers a request which needs no store: {}",
        "The process stands still or is overloaded, another program has the port, or it waits for TLS.",
        "Ask again with --timeout 10, and with --tls if it has a certificate; on its machine see with ss -ltnp which "
        "process listens, and what that logs. A worker that stands still for 30 s is replaced by itself.",
    ),
    Port.FOREIGN: (
        "the port is open, and does not speak RocketMQ's protocol: {}",
        "Another program has the port, a balancer has nothing behind it, or it wants TLS.",
        "See with ss -ltnp on its machine which process listens; give --tls if it has a certificate.",
    ),
}
"""What one sees, why, and what to do, by what is there."""
DENIED: Final = frozenset({"unauthenticated", "forbidden"})
"""Kinds of problems of callers that the rules of access do not admit."""
HTTP_SILENT: Final = {
    Port.CLOSED: (
        "No process listens there, its machine is down, or a firewall is between.",
        "Start it, open the way to it, or give the URL of the HTTP side (httpPort) with --http.",
    ),
    Port.MUTE: (
        "The HTTP worker stands still or is overloaded, or another program has the port.",
        "Ask again with --timeout 10; on its machine see with ss -ltnp which process listens, and what that logs. A "
        "worker that stands still for 30 s is replaced by itself.",
    ),
}
"""Why, and what to do, where an HTTP side does not answer."""


def check(facts: Facts) -> Iterator[Finding]:
    """All of them."""
    yield from _unreachable(facts)
    yield from _remoting_as_http(facts)
    yield from _http_silent(facts)
    yield from _http_denied(facts)
    yield from _slow(facts)
    yield from _versions(facts)
    yield from _options(facts)
    yield from _harmful_options(facts)
    yield from _clocks(facts)


def _unreachable(facts: Facts) -> Iterator[Finding]:
    """Yield addresses where no name server answers, by what is there."""
    for server in facts.name_servers:
        http = server.http
        if server.failure is None or (
            server.only_http and http is not None and (http.port or http.is_remoting)
        ):
            continue  # or the HTTP side has a finding of its own
        at = (server.address,)
        if server.port is Port.HTTP:
            yield Finding(
                Severity.ERROR,
                "port-is-http",
                f"this is the HTTP port, remoting is usually 9876: {server.failure}",
                at,
                at,
                "Give the remoting port (listenPort) with -n, and this one with --http.",
            )
        else:
            what, why, advice = SILENT[server.port]
            yield Finding(
                Severity.ERROR, "name-server-silent", what.format(server.failure), at, at, advice, why
            )


def _remoting_as_http(facts: Facts) -> Iterator[Finding]:
    for server in facts.name_servers:
        if server.http is not None and server.http.is_remoting:
            yield Finding(
                Severity.WARNING,
                "port-is-remoting",
                f"{server.http.url} is a remoting port, HTTP is usually 8080: it answers RocketMQ's requests, and GET "
                f"/healthz got: {server.http.failure}",
                (server.address,),
                (server.http.url,),
                "Give the HTTP port (httpPort) with --http; leases, drains, jobs and limits are not known without it.",
            )


def _http_silent(facts: Facts) -> Iterator[Finding]:
    """Yield the URLs of --http that did not answer, each once."""
    where: dict[tuple[str, str | None, Port], list[str]] = {}
    for server in facts.name_servers:
        http = server.http
        if http is not None and http.port is not None:
            where.setdefault((http.url, http.failure, http.port), []).append(server.address)
    for (url, failure, port), servers in where.items():
        why, advice = HTTP_SILENT[port]
        yield Finding(
            Severity.ERROR,
            "http-silent",
            f"the HTTP side {url} does not answer: {failure}; leases, drains, jobs and limits are not known, and what "
            "the name server finds about itself is missing here",
            tuple(servers),
            (url,),
            advice,
            why,
        )


def _http_denied(facts: Facts) -> Iterator[Finding]:
    for server in facts.reachable:
        http = server.http
        if http is not None and http.refused_kind in DENIED:
            yield Finding(
                Severity.WARNING,
                "http-denied",
                f"the HTTP side {http.url} refuses this caller: {http.failure}; leases, drains, jobs and limits are not"
                " known, and what the name server finds about itself is missing here",
                (server.address,),
                (http.url,),
                "Give --token-file with a token of a principal with the role operator or admin: mqns access create "
                "makes one.",
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
            "Run one release: update those that are behind.",
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
                f"Give all the same value: {command_line('mqns', 'config', 'set', *arguments(key, 'VALUE'))}",
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
                "Let both follow the same time server (NTP).",
            )


def _option(server: NameServerFacts, key: str) -> str:
    return (server.config or {}).get(key, "")


def _each(servers: Iterable[NameServerFacts], value: Callable[[NameServerFacts], str]) -> str:
    """`V4_9_7 at a:9876, V5_5_0 at b:9876 and c:9876`"""
    where: dict[str, list[str]] = {}
    for server in servers:
        where.setdefault(value(server), []).append(server.address)
    return ", ".join(f"{said} at {' and '.join(addresses)}" for said, addresses in where.items())
