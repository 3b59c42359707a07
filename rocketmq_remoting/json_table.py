"""Decoding a big table out of a JSON text in blocks, at the speed of the C decoder.

The end of a member is guessed with a regular expression, and the guess is verified by decoding the text before it:
a text that is a valid object once a brace is appended ends between two members of that object."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, Generic, TypeVar

import msgspec

from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.json_decoding import UNREADABLE
from rocketmq_remoting.table_blocks import TableBlocks
from rocketmq_remoting.typed import decoder

T = TypeVar("T")

BLOCK_BYTES: Final = 32 << 10
"""Size of a block; decoding one takes about 0.1 ms."""
_REACH: Final = BLOCK_BYTES + (64 << 10)
"""Bytes after the start of a block within which its end is searched."""
SEARCHED_BYTES: Final = 256 << 10
"""Searched for a name in one step."""
_GAP = rb"\s{0,256}+"
_START: Final = re.compile(_GAP + rb":" + _GAP + rb"\{(?=" + _GAP + rb'")')
_BETWEEN: Final = re.compile(rb"\}(?<!\{\})(?=" + _GAP + rb"," + _GAP + rb'")')  # no topic is empty
_LAST: Final = re.compile(rb"\}(?=" + _GAP + rb"\})")
_ATTEMPTS: Final = (
    *((_BETWEEN, BLOCK_BYTES // part, 3) for part in (1, 4, 16, 64, BLOCK_BYTES)),
    (_LAST, 0, 8),
)
_CLOSING: Final = re.compile(_GAP + rb"([,}])")


class JsonTable(Generic[T]):
    """A JSON object that maps names to members, found in a text under the key `name`.

    `strict` is the type that peers write; a member of another type is decoded as `loose`."""

    def __init__(self, name: str, strict: Any, loose: Any) -> None:
        self.name = name.encode()
        self._strict: msgspec.json.Decoder[dict[str, T]] = decoder(dict[str, strict])
        self._loose: msgspec.json.Decoder[dict[str, T]] = decoder(dict[str, loose], strict=False)

    def extract(
        self, text: bytes, blocks: TableBlocks | None = None
    ) -> Cooperative[tuple[dict[str, T], bytes] | None]:
        """Return the table's members and the text with an empty table in its place; members of unchanged `blocks`
        are left out.

        None if `text` has no such table or more than one, is no strict JSON, or its layout prevents division into
        blocks. Whether the table stood at its proper place is for the caller to check, by the empty table's.
        Raises BodyError."""
        place = yield from _only_place(self.name, text)
        start = _START.match(text, place) if place >= 0 else None
        if start is None:
            return None
        members: dict[str, T] = {}
        blocks = blocks or TableBlocks()
        at = start.end()
        while True:
            if (after := blocks.skip(text, at)) > at:
                at = after
                continue
            decoded = yield from self._decode_block(text, at, blocks)
            if decoded is None:
                return None
            part, end, is_last = decoded
            count = len(members) + len(part)
            members.update(part)
            blocks.unique = blocks.unique and len(members) == count
            if is_last:
                return members, text[: start.end()] + text[end:]
            blocks.add(text, at, end)
            at = end

    def is_named_in(self, text: bytes) -> Cooperative[bool]:
        """Return whether the table's name occurs anywhere in `text`."""
        for start in range(0, len(text), SEARCHED_BYTES):
            if text.find(self.name, start, start + SEARCHED_BYTES + len(self.name) - 1) >= 0:
                return True
            yield
        return False

    def _decode_block(
        self, text: bytes, at: int, blocks: TableBlocks
    ) -> Cooperative[tuple[dict[str, T], int, bool] | None]:
        """Return the members of the block at `at`, the start of the next block (or the table's closing brace), and
        whether it is the last."""
        for end in chain(blocks.possible_ends(text, at, at + _REACH), _possible_ends(text, at)):
            yield
            part = self._decode(b"{" + text[at:end] + b"}")
            if part is not None:
                closing = _CLOSING.match(text, end)
                assert closing is not None
                is_last = closing[1] == b"}"
                return part, closing.start(1) if is_last else closing.end(), is_last
        return None

    def _decode(self, text: bytes) -> dict[str, T] | None:
        """Return the members, or None if `text` is no JSON."""
        try:
            return self._strict.decode(text)
        except msgspec.ValidationError:
            pass  # JSON of other types: decoded below
        except UNREADABLE:
            return None
        try:
            return self._loose.decode(text)
        except msgspec.ValidationError as error:
            raise BodyError(str(error).partition("\n")[0]) from error
        except UNREADABLE:
            return None


def _only_place(name: bytes, text: bytes) -> Cooperative[int]:
    """Return the end of the quoted `name`, or -1 if it occurs not once."""
    quoted, place = b'"%s"' % name, -1
    for start in range(0, len(text), SEARCHED_BYTES):
        place = text.find(quoted, start, start + SEARCHED_BYTES + len(quoted) - 1)
        if place >= 0:
            break
        yield
    else:
        return -1
    # What is mostly not there is found missing by rfind in half the time.
    for start in range(place + 1, len(text), SEARCHED_BYTES):
        if text.rfind(quoted, start, start + SEARCHED_BYTES + len(quoted) - 1) >= 0:
            return -1
        yield
    return place + len(quoted)


def _possible_ends(text: bytes, at: int) -> Iterator[int]:
    """Yield possible ends of a block: first at full size, then at smaller sizes, at last the end of the table."""
    reach = at + _REACH
    for pattern, distance, tries in _ATTEMPTS:
        position = at + distance
        for _ in range(tries):
            guess = pattern.search(text, position, reach)
            if guess is None:
                break
            position = guess.end()
            yield position
