"""Comparing brokers, members and leases with one another, and with the lists of brokers and clusters."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from redis.exceptions import ResponseError

from registry.damage.key_types import is_wrong_type, types_of_brokers, types_of_leases, types_of_members
from registry.damage.texts import readable
from registry.expiry.worker_lease import names_of_members
from registry.long_work.scan import members_of
from registry.plans import Batch, Plan, call
from registry.repair.slices import BROKER, MEMBER, Slices
from registry.repair.state import Repaired

LEASES: Final = 12
"""Members that one script reads; each may have many names, of which each may have many members."""
PAGE: Final = 48  # leases
BROKERS: Final = 12  # of one request
FEW: Final = 4  # members of a broker that is compared in one request with others


class Leased(msgspec.Struct):
    """What the leases showed, its types compared: members, their broker names, and members that have nothing else."""

    members: set[str]
    names: set[str]
    unknown: list[str]


def compare_brokers(slices: Slices, timeout_ms: int) -> Plan[None]:
    """Compare all of them; `timeout_ms` is for members that have lost theirs."""
    leased = yield from _leases(slices)
    listing = yield from _listing(slices, leased.names)
    comparison = BrokerComparison(slices, listing, leased, timeout_ms)
    names = list(listing)
    for start in range(0, len(names), BROKERS):
        yield from comparison.compare(names[start : start + BROKERS])
    for start in range(0, len(leased.unknown), LEASES):  # no broker has them either
        yield from slices.script("repair_leases", {"drop": 1}, leased.unknown[start : start + LEASES])


def _leases(slices: Slices) -> Plan[Leased]:
    """Compare members with brokers."""
    keys, cursor, leased = slices.keys, "0", Leased(set(), set(), [])
    while True:
        cursor, page = yield call("ZSCAN", keys.leases, cursor, "COUNT", PAGE)
        members = yield from slices.readable("members", keys.leases, [member for member, _ in page])
        nameless = [member for member in members if ":" not in member]  # of no cluster: no registration's
        if nameless:
            yield call("ZREM", keys.leases, *nameless)
            slices.repaired += Repaired(members=len(nameless))
            members = [member for member in members if ":" in member]
        yield from slices.delete_wrong(types_of_members(keys, members))
        names = set(readable((yield from names_of_members(keys, members))))
        yield from slices.delete_wrong(types_of_brokers(keys, names))
        for start in range(0, len(members), LEASES):
            part = members[start : start + LEASES]
            unknown, _ = yield from slices.retried(
                partial(slices.script, "repair_leases", {"drop": 0}, part),
                partial(types_of_leases, keys, members, names),
            )
            leased.unknown += unknown
            yield from slices.rest(MEMBER * len(part))
        leased.members.update(members)
        leased.names.update(names)
        if str(cursor) == "0":
            return leased


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


class BrokerComparison:
    """The comparison of brokers with their members; `listing` has the clusters whose sets list each."""

    def __init__(
        self, slices: Slices, listing: Mapping[str, list[str]], leased: Leased, timeout_ms: int
    ) -> None:
        self._slices = slices
        self._listing = listing
        self._leased = leased
        self._timeout_ms = timeout_ms

    def compare(self, names: Sequence[str]) -> Plan[None]:
        """Compare some; the types of their keys first, of those that are leased only if they changed since."""
        try:
            yield from self._compare(names, self._leased.names, self._leased.members)
        except ResponseError as error:
            if not is_wrong_type(error):
                raise
            yield from self._compare(names, (), ())

    def _compare(
        self, names: Sequence[str], typed_names: Collection[str], typed_members: Collection[str]
    ) -> Plan[None]:
        slices, keys = self._slices, self._slices.keys
        yield from slices.delete_wrong(
            types_of_brokers(keys, [name for name in names if name not in typed_names])
        )
        tables: list[dict[str, str]] = yield Batch(
            tuple(call("HGETALL", keys.broker(name)) for name in names)
        )
        members = {
            name: readable(member for field, member in table.items() if field.startswith("addr:"))
            for name, table in zip(names, tables, strict=True)
        }
        untyped = (member for own in members.values() for member in own if member not in typed_members)
        yield from slices.delete_wrong(types_of_members(keys, untyped))
        few = [name for name in names if len(members[name]) <= FEW]
        if few:
            yield from slices.scripts("repair_broker", [self._request(name, 0) for name in few])
            yield from slices.rest(sum(BROKER + MEMBER * len(members[name]) for name in few))
        for name in names:
            if len(members[name]) > FEW:
                yield from self._crowded(name, len(members[name]))

    def _crowded(self, name: str, members: int) -> Plan[None]:
        """Compare a broker that has many members, some at a time."""
        done = 0
        while True:
            ((done, _),) = yield from self._slices.scripts("repair_broker", [self._request(name, done)])
            yield from self._slices.rest(BROKER + MEMBER * members)
            if not done:
                return

    def _request(self, name: str, done: int) -> dict[str, object]:
        return {"name": name, "clusters": self._listing[name], "timeout": self._timeout_ms, "from": done}
