"""What a request names, and which names and addresses patterns and networks have."""

import re
from collections.abc import Iterable
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Final

from tests.guarded.world import ALL, Names, WireRequest

OF_BROKER: Final = (103, 104, 322, 901, 904, 205, 327)


def names_on_wire(request: WireRequest) -> dict[str, Names]:
    """Return what a request names; a list has all that there is."""
    fields = request.fields

    def of(name: str) -> tuple[str, ...]:
        return (fields[name],) if name in fields else ()

    if request.code in OF_BROKER:
        topics = request.topics if request.code == 103 else ()
        return {"clusters": of("clusterName"), "brokers": of("brokerName"), "topics": topics}
    if request.code in (105, 217):
        return {"topics": of("topic"), "brokers": request.brokers if request.code == 217 else ()}
    if request.code == 216:
        return {"topics": of("topic"), "clusters": of("clusterName") or ALL}
    if request.code in (100, 101, 102, 219):
        return {"kv": of("namespace")}
    if request.code == 224:
        return {"clusters": of("cluster"), "topics": ALL}
    return dict.fromkeys(("clusters", "brokers", "topics", "kv"), ALL)


def allows(patterns: tuple[str, ...], names: Names) -> bool:
    if names is ALL:
        return "*" in patterns
    return all(any(_matches(pattern, name, ".") for pattern in patterns) for name in names)


def matches_certificate(pattern: str, kind: str, name: str) -> bool:
    of_kind, _, text = pattern.partition(":")
    run = "[^/]" if kind == "uri" else "[^.]"
    return of_kind == kind and _matches(text.lower() if kind == "dns" else text, name, run)


def _matches(pattern: str, name: str, run: str) -> bool:
    return re.fullmatch(f"{run}*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def is_in(host: str, networks: Iterable[str]) -> bool:
    return any(_is_within(host, network) for network in networks)


@cache
def _is_within(host: str, network: str) -> bool:
    return ip_address(host) in ip_network(network)


@cache
def is_loopback(host: str) -> bool:
    return ip_address(host).is_loopback
