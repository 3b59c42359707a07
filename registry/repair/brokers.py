"""Comparing brokers, members and leases with one another, and with the lists of brokers and clusters."""

from collections.abc import Iterable
from typing import Final

from registry.plans import Plan, call
from registry.repair.names import readable
from registry.repair.slices import BROKER, MEMBER, Slices
from registry.repair.state import Repaired
from registry.repair.types import types_of_brokers, types_of_members
from registry.scan import members_of
from registry.worker_lease import names_of_members

LEASES: Final = 12
"""Of one script; each member may have many names, of which each may have many members."""


def compare_brokers(slices: Slices, timeout_ms: int) -> Plan[None]:
    """Compare all of them; `timeout_ms` is for members that have lost theirs."""
    unknown, leased = yield from _leases(slices)
    listing = yield from _listing(slices, leased)
    for name, clusters in listing.items():
        yield from _broker(slices, name, clusters, timeout_ms)
    for start in range(0, len(unknown), LEASES):  # no broker has them either
        yield from slices.script("repair_leases", {"drop": 1}, unknown[start : start + LEASES])


def _leases(slices: Slices) -> Plan[tuple[list[str], set[str]]]:
    """Compare members with brokers; return those that have a lease and nothing else, and the others' broker names."""
    keys, cursor, unknown, leased = slices.keys, "0", list[str](), set[str]()
    while True:
        cursor, page = yield call("ZSCAN", keys.leases, cursor, "COUNT", LEASES)
        members = yield from slices.readable("members", keys.leases, [member for member, _ in page])
        nameless = [member for member in members if ":" not in member]  # of no cluster: no registration's
        if nameless:
            yield call("ZREM", keys.leases, *nameless)
            slices.repaired += Repaired(members=len(nameless))
            members = [member for member in members if ":" in member]
        for start in range(0, len(members), LEASES):
            part = members[start : start + LEASES]
            yield from slices.delete_wrong(types_of_members(keys, part))
            names = set(readable((yield from names_of_members(keys, part))))
            leased |= names
            yield from slices.delete_wrong(types_of_brokers(keys, names))
            found, _ = yield from slices.script("repair_leases", {"drop": 0}, part)
            unknown += found
            yield from slices.rest(MEMBER * len(part))
        if str(cursor) == "0":
            return unknown, leased


def _listing(slices: Slices, leased: Iterable[str]) -> Plan[dict[str, list[str]]]:
    """Return all broker names, with the clusters whose sets list them."""
    keys = slices.keys
    listing: dict[str, list[str]] = {name: [] for name in leased}
    for name in (yield from _names(slices, keys.brokers)):
        listing.setdefault(name, [])
    clusters = yield from _names(slices, keys.clusters)
    yield from slices.delete_wrong({keys.cluster(cluster): "set" for cluster in clusters})
    for cluster in clusters:
        for name in (yield from _names(slices, keys.cluster(cluster))):
            listing.setdefault(name, []).append(cluster)
        yield from slices.rest(BROKER)
    return listing


def _names(slices: Slices, key: str) -> Plan[list[str]]:
    return (yield from slices.readable("brokers", key, (yield from members_of(key))))


def _broker(slices: Slices, name: str, clusters: list[str], timeout_ms: int) -> Plan[None]:
    """Compare a broker with its members."""
    keys = slices.keys
    yield from slices.delete_wrong(types_of_brokers(keys, (name,)))
    fields = yield call("HGETALL", keys.broker(name))
    members = readable(member for field, member in fields.items() if field.startswith("addr:"))
    yield from slices.delete_wrong(types_of_members(keys, members))
    done = 0
    while True:
        request = {"name": name, "clusters": clusters, "timeout": timeout_ms, "from": done}
        done, _ = yield from slices.script("repair_broker", request)
        yield from slices.rest(BROKER + MEMBER * len(members))
        if not done:
            return
