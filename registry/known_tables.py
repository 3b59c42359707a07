"""What brokers registered lately: what they said, what was decided of it, and how their topic tables looked.

A memory of one process, and only ever a way to ask and read less: it counts for the very epoch and generation of a
broker under which it was made, whatever alters the broker's topics moves its generation, and the script judges in the
end.
"""

from collections import OrderedDict
from typing import Final

import msgspec
from msgspec.structs import replace

from registry.decision import Decision
from registry.registering import Signature
from remoting.known_slices import KnownSlice

BYTES_MOST: Final = 16 << 20
"""Of all members together; texts are kept in one half of it only."""
TEXTS_MOST: Final = 2000
"""Of one member."""
COST: Final = 1000
PIECE_COST: Final = 250
"""Bytes that a table takes, and a slice (which stands for 32 KB of a body) or a text of it."""


class KnownTable(msgspec.Struct, frozen=True):
    """Of one member: the signature of its last registration and what was decided of it.

    `slices` of the body are stored as they were; `texts` is what is stored of all topics that it names, and maybe of
    others, None when those are many."""

    mark: Signature
    decided: Decision
    slices: dict[bytes, KnownSlice]
    texts: dict[str, str] | None = None

    @property
    def cost(self) -> int:
        return COST + PIECE_COST * (len(self.slices) + len(self.texts or ()))


class KnownTables:
    """By member; the one that registered longest ago goes first."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, KnownTable] = OrderedDict()
        self._bytes = 0

    def last(self, member: str) -> KnownTable | None:
        """The member's last table, whatever happened since."""
        return self._tables.get(member)

    def get(self, member: str, at: str) -> KnownTable | None:
        """The member's last table, if the state (`Decision.at`) is still that one."""
        table = self._tables.get(member)
        return table if table is not None and table.decided.at == at else None

    def put(self, member: str, table: KnownTable) -> None:
        """Remember what was just stored."""
        self.drop(member)
        if self._bytes + table.cost > BYTES_MOST // 2:
            table = replace(table, texts=None)
        self._tables[member] = table
        self._bytes += table.cost
        while self._bytes > BYTES_MOST:
            self.drop(next(iter(self._tables)))

    def drop(self, member: str) -> None:
        """What is stored may be otherwise."""
        table = self._tables.pop(member, None)
        if table is not None:
            self._bytes -= table.cost
