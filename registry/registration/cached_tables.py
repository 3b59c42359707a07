"""Cached tables: of each member's last registration its signature, its decision and its topics.

A cache of one process, and only ever a way to ask and read less: a table is true under the very epoch and generation of
its broker under which it was stored, whatever alters the broker's topics moves its generation, and the script judges in
the end.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from registry.caching.bounded import Bounded
from registry.registration.decision import Decision
from registry.registration.request import Signature
from rocketmq_remoting.table_blocks import Block

BYTES_MOST: Final = 16 << 20
"""Bytes of all members together; texts are kept in one half of it only."""
TEXTS_MOST: Final = 2000
"""Texts of one member."""
COST: Final = 1000
BLOCK_COST: Final = 250
TEXT_COST: Final = 170
"""Bytes that a table takes, and a block (which stands for 32 KB of a body) or a text of it, beside its topic's name."""


class CachedTable(msgspec.Struct, frozen=True):
    """The signature of a member's last registration, and the decision on it.

    `slices` are the blocks of the body that are stored as they were; `texts` is what is stored of all topics that it
    names, and maybe of others, None when those are many; the names take `names_bytes`."""

    signature: Signature
    decision: Decision
    slices: dict[bytes, Block]
    texts: dict[str, str] | None = None
    names_bytes: int = 0

    @property
    def cost(self) -> int:
        """Return its bytes."""
        texts = 0 if self.texts is None else TEXT_COST * len(self.texts) + self.names_bytes
        return COST + BLOCK_COST * len(self.slices) + texts


class CachedTables:
    """The cached tables of a process, by member."""

    def __init__(self) -> None:
        self._tables: Bounded[str, CachedTable] = Bounded(BYTES_MOST, lambda _, table: table.cost)

    def last(self, member: str) -> CachedTable | None:
        """Return the member's last table, whatever happened since."""
        return self._tables.get(member)

    def get(self, member: str, decision: Decision) -> CachedTable | None:
        """Return the member's last table if the state (`Decision.at`) is still that one."""
        table = self._tables.get(member)
        if table is None or table.decision is decision or table.decision.at == decision.at:
            return table
        return None

    def put(self, member: str, table: CachedTable) -> None:
        """Keep what was just stored."""
        self.drop(member)
        if self._tables.size + table.cost > BYTES_MOST // 2:
            table = replace(table, texts=None)
        self._tables.put(member, table)

    def drop(self, member: str) -> None:
        """Remove a table that may no longer be what is stored."""
        self._tables.pop(member)
