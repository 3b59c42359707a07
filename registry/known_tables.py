"""What the topic tables of brokers looked like that registered lately: which slices of a body are stored as they are.

A memory of one process, and only ever a way to read less: it counts for the very epoch and generation of a broker
under which it was made, and whatever alters the broker's topics moves its generation."""

from collections import OrderedDict
from typing import Final

import msgspec

from remoting.known_slices import KnownSlice

SLICES_MOST: Final = 16_384
"""Of all brokers together; one takes some 250 bytes and stands for 32 KB of a body."""


class KnownTable(msgspec.Struct, frozen=True):
    """`at` names the state of the broker (epoch and generation) and how its topics were stored."""

    at: str
    slices: dict[bytes, KnownSlice]


class KnownTables:
    """By member; the one that registered longest ago goes first."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, KnownTable] = OrderedDict()
        self._count = 0

    def get(self, member: str, at: str) -> dict[bytes, KnownSlice] | None:
        """The slices of the member's last table, if the state is still that one."""
        table = self._tables.get(member)
        return table.slices if table is not None and table.at == at else None

    def put(self, member: str, at: str, slices: dict[bytes, KnownSlice]) -> None:
        """Remember a table that was just stored."""
        self._drop(member)
        if not slices:
            return
        self._tables[member] = KnownTable(at, slices)
        self._count += len(slices)
        while self._count > SLICES_MOST:
            self._drop(next(iter(self._tables)))

    def _drop(self, member: str) -> None:
        table = self._tables.pop(member, None)
        if table is not None:
            self._count -= len(table.slices)
