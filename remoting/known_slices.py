"""Slices of a body that were there the last time, so that only what changed is read.

A broker that changes one topic sends its whole table again. Cut where the last one was cut, nearly all of its slices
have the same bytes; and after an insertion the next slice that begins as one did then is in step again."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from zlib_ng.zlib_ng import crc32

ANCHOR: Final = 48
"""Bytes by which a slice is found: the name of its first member, or most of it."""


class KnownSlice(NamedTuple):
    """Its length in bytes, up to where the next one begins, and their CRC-32."""

    length: int
    crc: int


class Slices:
    """Of one reading: what is known from the last one, and what was found this time.

    `skipped` is how many were known, and so not read; `unique` whether no name came twice among those that were."""

    def __init__(self, known: dict[bytes, KnownSlice] | None = None) -> None:
        self.known = known if known is not None else {}
        self._order = [*self.known]
        self._next = 0  # of them, the one to expect
        self.found: dict[bytes, KnownSlice] = {}
        self.skipped = 0
        self.unique = True

    def skip(self, text: bytes, at: int) -> int:
        """Where the next slice begins, if the one at `at` is known; else `at`."""
        anchor = text[at : at + ANCHOR]
        known = self.known.get(anchor)
        if known is None:
            return at
        self._next = self._order.index(anchor) + 1
        if crc32(text[at : at + known.length]) != known.crc:
            return at
        self.found[anchor] = known
        self.skipped += 1
        return at + known.length

    def ends(self, text: bytes, at: int, reach: int) -> Iterator[int]:
        """Where the slice at `at` may end so that a known one begins behind it."""
        for anchor in self._order[self._next : self._next + 2]:
            start = text.find(anchor, at + 1, reach)
            if start > 0 and text[start - 1 : start] == b",":
                yield start - 1

    def note(self, text: bytes, at: int, end: int) -> None:
        """A slice was read."""
        anchor = text[at : at + ANCHOR]
        self.unique = self.unique and anchor not in self.found
        self.found[anchor] = KnownSlice(end - at, crc32(text[at:end]))
