"""Members that a mirror keeps: read from other name servers, and registered here without their brokers' help.

Scripts judge what a mirror may do (`lua/includes/mirrored.lua`, docs/decisions/0021-mirrored-members.md). It registers
by `registry.registration.register`, with `Registration.mirrored` and always all topics, and removes by
`registry.removal.remove_mirrored`."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from registry.keys import Keys, member_key
from registry.plans import NOTHING, Batch, Plan, ScriptItem, exceptions, joined
from rocketmq_remoting.data_version import DataVersion

__all__ = ["NO_VERSION", "MirrorState", "MirroredMember", "renew_mirrored"]

MirrorState = Literal["renewed", "unknown", "ownRegistration"]
"""`unknown`: it is to be registered; `ownRegistration`: it registered itself, and is not the mirror's."""
NO_VERSION: Final = DataVersion(0, 0, 0)
"""The data version of what is mirrored: name servers tell no version without renewing the broker's lease."""
AT_ONCE: Final = 100
"""Members a script."""
_STATES: Final[dict[str, MirrorState]] = {"renewed": "renewed", "own": "ownRegistration"}


class MirroredMember(msgspec.Struct, frozen=True):
    """A member as a mirror has registered it; the address is `host:port`."""

    cluster: str
    name: str
    id: int
    address: str


def renew_mirrored(keys: Keys, members: Sequence[MirroredMember]) -> Plan[tuple[MirrorState, ...]]:
    """Renew the leases of mirrored members for their time-outs, and return the state of each."""
    items = [_item(keys, member) for member in members]
    pages = [items[at : at + AT_ONCE] for at in range(0, len(items), AT_ONCE)]
    returned = yield Batch(tuple(joined(page) for page in pages))
    replies = [reply for page, raw in zip(pages, returned, strict=True) for reply in exceptions(page, raw)]
    return tuple(_STATES.get(reply[0], "unknown") for reply in replies)


def _item(keys: Keys, member: MirroredMember) -> ScriptItem:
    key = member_key(member.cluster, member.address)
    place = f"slot:{member.id}:{member.name}"
    return ScriptItem("renew_mirrored", (keys.leases,), (keys.member(key),), (key, place), expected=NOTHING)
