"""What a mirror asks of the name server that it writes to (docs/http-api.md, Mirrored brokers)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from mqns.errors import ClientError

__all__ = ["MirroredMember", "OwnRegistration", "Refused", "Registration", "Target", "TopicRow"]


class MirroredMember(msgspec.Struct, frozen=True, rename="camel", order=True):
    """One address of a broker; the address is `host:port`, id 0 is the master."""

    cluster: str
    broker_name: str
    broker_id: int
    broker_addr: str


class TopicRow(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A topic on one broker; `perm`: 4 read, 2 write."""

    topic_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int


class Registration(MirroredMember, frozen=True, rename="camel", kw_only=True):
    """A member with what it is to have; `topics` of one member of each broker name."""

    mirrored_from: str
    zone_name: str | None
    enable_acting_master: bool
    topics: tuple[TopicRow, ...]


class Refused(ClientError):
    """The name server refused a request; others may go on."""


class OwnRegistration(Refused):
    """The broker registered itself, or another mirror has it."""


class Target(Protocol):
    """The name server that is written to. All raise Refused, and RemotingError when it cannot be reached."""

    async def service_start(self) -> str:
        """Return when its service began, as its workers say it (`startedMillis`)."""
        ...

    async def renew(self, members: Sequence[MirroredMember]) -> Sequence[str]:
        """Renew leases; return the state of each: `renewed`, `unknown` or `ownRegistration`."""
        ...

    async def mirrored(self, mark: str) -> Sequence[MirroredMember]:
        """Return all members that are mirrored from these name servers."""
        ...

    async def register(self, registration: Registration) -> bool:
        """Register a member; return whether anything changed. Raises OwnRegistration."""
        ...

    async def remove(self, member: MirroredMember, mark: str) -> bool:
        """Remove a mirrored member; return whether it was there."""
        ...

    async def set_kv(self, namespace: str, key: str, value: str | None) -> bool:
        """Set or delete a key (None); return whether anything changed."""
        ...
