"""All tables of a namespace as values, as the entries of the event stream lead to them."""

from typing import Final

import msgspec
from msgspec.structs import replace


class MemberState(msgspec.Struct, frozen=True):
    """What a member registered last; `version` is `stateVersion:timestamp:counter` of the data version, ""
    while the registration is incomplete. `mirrored` names the name servers that it was read from, "" of one that
    registered itself."""

    ha: str
    timeout_ms: int
    filters: tuple[str, ...]
    version: str
    mirrored: str = ""


class BrokerState(msgspec.Struct, frozen=True):
    """A broker name. `addrs` maps an id to its member `<cluster>:<addr>`. Without members the broker is gone; its
    topics count again only if a member comes back under the same epoch.

    `topics` are `readQ,writeQ,perm,sysFlag` by topic, `mappings` TopicQueueMappingInfo as JSON by topic."""

    epoch: int
    cluster: str
    clusters: frozenset[str]
    acting: bool = False
    zone: str = ""
    addrs: dict[int, str] = {}
    topics: dict[str, str] = {}
    mappings: dict[str, bytes] = {}


class Tables(msgspec.Struct, frozen=True):
    """All tables after entry `seq` of incarnation `inc`. `members` are by `<cluster>:<addr>`.

    `hold` and `drains` are JSON as stored; settings are by option name, secrets as `***`; KV values over 64 KB, which
    no entry holds, are None.

    Tables that are not `whole` lack rows, and may hold outdated ones: entries are not verified then, and those about
    unknown rows are skipped. `round` is the checkpoint round under way."""

    inc: str = ""
    seq: int = 0
    brokers: dict[str, BrokerState] = {}
    members: dict[str, MemberState] = {}
    kv: dict[str, dict[str, str | None]] = {}
    settings: dict[str, str] = {}
    drains: dict[str, str] = {}
    hold: str = ""
    whole: bool = True
    round: "CheckpointRound | None" = None

    def incomplete(self) -> "Tables":
        """Return these tables for a replay that goes on behind missing entries: any entry may be the next."""
        return replace(self, inc="", seq=0, whole=False, round=None)

    def living(self) -> dict[str, BrokerState]:
        """Return the brokers that have a member."""
        return {name: broker for name, broker in self.brokers.items() if broker.addrs}


class CheckpointRound(msgspec.Struct, frozen=True):
    """A checkpoint round under way: its number, its entries so far, and the tables by these and the changes since its
    begin."""

    number: str
    entries: int
    tables: Tables


UNKNOWN: Final = Tables(whole=False)
"""Tables of a reader that begins in the midst of a stream."""
