"""Blocks of a broker's topic table that are unchanged since its last registration, so that only the others are decoded.

A broker that changes one topic sends its whole table again. Divided where the last table was divided, nearly all
blocks have the same bytes; after an insertion, the next block that begins with a known anchor is matched again."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from zlib_ng.zlib_ng import crc32

ANCHOR: Final = 48
"""Bytes at the start of a block that identify it: the name of its first member, or most of it."""


class Block(NamedTuple):
    """Length of a block in bytes, up to the start of the next one, and the CRC-32 of those bytes."""

    length: int
    crc: int


class TableBlocks:
    """The blocks of one table, by anchor: `previous` of the last body, `current` of the body that is being read.

    `unchanged` counts the blocks that were skipped; `unique` is whether no member name was decoded twice."""

    def __init__(self, previous: dict[bytes, Block] | None = None) -> None:
        self.previous = previous if previous is not None else {}
        self._anchors = [*self.previous]
        self._next = 0  # index of the anchor that is expected next
        self.current: dict[bytes, Block] = {}
        self.unchanged = 0
        self.unique = True

    def skip(self, text: bytes, at: int) -> int:
        """Return the end of the block at `at` if it is unchanged, else `at`."""
        anchor = text[at : at + ANCHOR]
        block = self.previous.get(anchor)
        if block is None:
            return at
        self._next = self._anchors.index(anchor) + 1
        if crc32(text[at : at + block.length]) != block.crc:
            return at
        self.current[anchor] = block
        self.unchanged += 1
        return at + block.length

    def possible_ends(self, text: bytes, at: int, reach: int) -> Iterator[int]:
        """Yield the positions before `reach` where the block at `at` may end and a previous block begin."""
        for anchor in self._anchors[self._next : self._next + 2]:
            start = text.find(anchor, at + 1, reach)
            if start > 0 and text[start - 1 : start] == b",":
                yield start - 1

    def add(self, text: bytes, at: int, end: int) -> None:
        """Record the block from `at` to `end`, which was decoded."""
        anchor = text[at : at + ANCHOR]
        self.unique = self.unique and anchor not in self.current
        self.current[anchor] = Block(end - at, crc32(text[at:end]))
