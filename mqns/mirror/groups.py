"""What several name servers have together: a broker is there if any of them has it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from mqns.mirror.target import MirroredMember
from rocketmq_remoting.route import BrokerData

__all__ = ["Group", "Listing", "groups_of"]


class Listing(Protocol):
    """A name server that was asked for its brokers."""

    @property
    def address(self) -> str: ...

    @property
    def brokers(self) -> Mapping[str, BrokerData]: ...


class Group(msgspec.Struct, frozen=True):
    """The members of one broker name, by their ids; its attributes and topics are those of the name server `at`."""

    name: str
    at: str
    cluster: str
    acting: bool
    zone: str | None
    members: tuple[MirroredMember, ...]

    @property
    def topics_by(self) -> MirroredMember:
        """The member that the topics are registered with: the master, or the smallest id."""
        return self.members[0]


def groups_of(listings: Iterable[Listing]) -> dict[str, Group]:
    """Return the brokers by name. The first name server that has a name counts; others add addresses to it whose ids it
    does not have."""
    found: dict[str, tuple[str, BrokerData]] = {}
    addresses: dict[str, dict[int, str]] = {}
    for listing in listings:
        for name, data in listing.brokers.items():
            found.setdefault(name, (listing.address, data))
            known = addresses.setdefault(name, {})
            for number, address in data.broker_addrs.items():
                if number not in known and address not in known.values():
                    known[number] = address
    return {name: _group(name, at, data, addresses[name]) for name, (at, data) in sorted(found.items())}


def _group(name: str, at: str, data: BrokerData, addresses: dict[int, str]) -> Group:
    members = tuple(
        MirroredMember(data.cluster, name, number, address) for number, address in sorted(addresses.items())
    )
    return Group(name, at, data.cluster, data.enable_acting_master, data.zone_name, members)
