"""A registration that differs from the member's last one in its data version and some topics only.

`lua/reregister_topics.lua` alone writes it, when the process caches the last one; most changes of a cluster are such.
Small ones of one moment share a call.
"""

from typing import Any, Final

import msgspec

from registry.plans import Origin, ScriptItem, as_json
from registry.queue_data.slices import Slice, arguments
from registry.registration.cached_tables import CachedTable
from registry.registration.decision import Done, reregister_reply
from registry.registration.diff import NO_DIFF, TableDiff
from registry.registration.member_table import MemberTable
from registry.registration.order_tables import with_order_table
from registry.registration.request import RegisterContext
from rocketmq_remoting.table_blocks import TableBlocks

JOINED_MOST: Final = 16
"""Items of one call; it takes the store about a millisecond."""
JOINED_TOPICS: Final = 16
"""Topics of an item that may be in one call with others."""
JOINED_BYTES: Final = 4096
"""Bytes of the topics of such an item, as JSON."""


class Reregistration(msgspec.Struct, frozen=True):
    """A registration of a member whose `last` one is in `table`, and what it changes in that; `same`: no topic."""

    context: RegisterContext
    table: MemberTable
    last: CachedTable
    diff: TableDiff = NO_DIFF
    same: bool = False

    def item(self, origin: Origin) -> ScriptItem:
        """Return the item that writes at most one slice and its entry."""
        context, last, diff = self.context, self.last, self.diff
        keys, r, signature = context.keys, context.registration, context.signature
        member = context.member
        assert signature.version is not None
        assert last.signature.version is not None
        growth = as_json({"limits": context.limits, "adds": diff.growth}) if diff.growth.is_any else b""
        return ScriptItem(
            "reregister_topics",
            (keys.events_meta, keys.leases),
            (keys.broker(r.name), keys.member(member), keys.alive(member)),
            (
                origin.op,
                origin.actor,
                origin.peer or "",
                r.name,
                r.cluster,
                r.address,
                member,
                last.decision.epoch,
                str(last.decision.generation),
                last.signature.content,
                last.signature.version.text(),
                signature.content,
                signature.version.text(),
                context.owner or "",
                growth,
                *arguments(diff.slices[0] if diff.slices else None, diff.slices),
            ),
            with_order_table,
            1 if diff.growth.is_any else _most(diff.slices),
        )

    def written(self, reply: list[Any], blocks: TableBlocks) -> Done | None:
        """Return what the script replied, and cache what it wrote of a body with these blocks; None if it wrote
        nothing."""
        done = reregister_reply(reply)
        if not isinstance(done, Done):
            return None
        if self.same:
            self.table.restamp(self.last)
        else:
            self.table.update(self.last.decision, self.diff, blocks, done)
        return done


def can_reregister(context: RegisterContext, last: CachedTable) -> bool:
    """Return whether only the data version and topics differ from the master's last registration."""
    signature = context.signature
    return (
        context.registration.id == 0
        and last.signature.identity == signature.identity
        and last.signature.version is not None
        and signature.version is not None
        and last.signature.version != signature.version
    )


def _most(slices: tuple[Slice, ...]) -> int:
    """Return how many such items a call may have. What grows is alone: items of one call do not see one another."""
    few = all(slice_.count <= JOINED_TOPICS and len(slice_.rows) <= JOINED_BYTES for slice_ in slices)
    return JOINED_MOST if few else 1
