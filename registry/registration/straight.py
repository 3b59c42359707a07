"""The straight way of a registration that changes its data version and some topics of a master, and nothing else.

Its header is that of the member's last registration, whose table this process has cached: no plan, one look at the
body, one item of `lua/reregister_topics.lua`. Whatever is otherwise goes the long way (`register`), from its start.
"""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from registry.plans import Origin
from registry.registration.cached_tables import CachedTables
from registry.registration.decision import Done
from registry.registration.diff import TOPICS_A_STEP, short_diff
from registry.registration.member_table import MemberTable
from registry.registration.request import (
    RegisterContext,
    Signature,
    content,
    names_filter_servers_first,
    version_in,
)
from registry.registration.reregistration import Reregistration, can_reregister
from rocketmq_remoting.registration import decode_usual_body
from rocketmq_remoting.table_blocks import TableBlocks

__all__ = ["Change", "Split", "change_of", "of_its_kind"]

Split = tuple[bytes, bytes, memoryview]
"""A body as `rocketmq_remoting.body_signature.split_signature` has it."""


_EACH_ITS_OWN: Final = Origin("", "")


class Change(msgspec.Struct, frozen=True):
    """A registration that can go the straight way: `split` and `body_bytes` are of its body."""

    writing: Reregistration
    split: Split
    body_bytes: int

    def written(self, reply: Any) -> Done | None:
        """Return what the script replied, None if it wrote nothing or the store could not serve."""
        return None if isinstance(reply, Exception) else self.writing.written(reply, TableBlocks())


def of_its_kind(context: RegisterContext) -> RegisterContext | None:
    """Return what is known of further registrations with this one's header; None if they all go the long way."""
    if context.registration.id != 0 or context.delete_missing or context.claimant.guard:
        return None
    registration = replace(context.registration, body=b"", crc=None)
    return replace(context, registration=registration, origin=_EACH_ITS_OWN)


def change_of(
    kind: RegisterContext, tables: CachedTables, body: bytes, split: Split, crc: int
) -> Change | None:
    """Return what a registration of this kind (`of_its_kind`) changes, if it can go the straight way.

    Before its data version, the body has the same as theirs; `crc` is its CRC-32. Raises BodyError."""
    last = tables.last(kind.member)
    text, front, rest = split
    version = version_in(text)
    if last is None or last.texts is None or version is None or not last.decision.writes:
        return None
    signature = Signature(content(kind.signature.identity, body, rest, crc), version)
    context = replace(kind, signature=signature)
    table = MemberTable(context, tables)
    if not can_reregister(context, last):
        return None
    if last.signature.content == signature.content:
        return Change(Reregistration(context, table, last, same=True), split, len(body))
    r = kind.registration
    read = decode_usual_body(body, version=r.version, compressed=r.compressed)
    if read is None or len(read.topics) > TOPICS_A_STEP or not last.texts.keys() >= read.topics.keys():
        return None
    if not names_filter_servers_first(front, read):
        return None
    diff = short_diff(r.name, read.topics, last.texts, last.decision)
    if not diff.applied or len(diff.slices) > 1:
        return None
    return Change(Reregistration(context, table, last, diff), split, len(body))
