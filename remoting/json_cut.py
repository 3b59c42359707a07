"""Reading a big table out of a JSON text in slices, at the speed of the C decoder.

Where a member of the table ends is guessed from its looks, and the guess is proved by decoding what stands before it:
a text that reads as an object when a brace is added has left the decoder between two members of that object."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, Generic, TypeVar

import msgspec

from remoting.errors import BodyError
from remoting.known_slices import Slices
from remoting.steps import Steps

T = TypeVar("T")
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
SLICE_BYTES: Final = 32 << 10
"""What is decoded at once takes some 0.1 ms."""
_REACH: Final = SLICE_BYTES + (64 << 10)
"""How far behind a slice's start its end is looked for."""
_SEARCHED_BYTES: Final = 256 << 10
_GAP = rb"\s{0,256}+"
_START: Final = re.compile(_GAP + rb":" + _GAP + rb"\{(?=" + _GAP + rb'")')
_BETWEEN: Final = re.compile(rb"\}(?<!\{\})(?=" + _GAP + rb"," + _GAP + rb'")')  # no topic is empty
_LAST: Final = re.compile(rb"\}(?=" + _GAP + rb"\})")
_TRIED: Final = (*((_BETWEEN, SLICE_BYTES // part, 3) for part in (1, 4, 16, 64, SLICE_BYTES)), (_LAST, 0, 8))
_CLOSING: Final = re.compile(_GAP + rb"([,}])")


class Table(Generic[T]):
    """How a table is found and read: objects by name under the name `name`.

    `strict` is how peers write it; what has another type there is read by `loose`."""

    def __init__(self, name: str, strict: Any, loose: Any) -> None:
        self.name = name.encode()
        self._strict = msgspec.json.Decoder(dict[str, strict])
        self._loose = msgspec.json.Decoder(dict[str, loose], strict=False)

    def cut(self, text: bytes, slices: Slices | None = None) -> Steps[tuple[dict[str, T], bytes] | None]:
        """The table's members, and the text with an empty table in its place; of known `slices` no members.

        None when `text` has no such table or two, or is no strict JSON, or is laid out too oddly to be cut. Whether
        the table stood where it belongs is for the caller to see, from where the empty one is. Raises BodyError."""
        place = yield from _only_place(self.name, text)
        start = _START.match(text, place) if place >= 0 else None
        if start is None:
            return None
        members: dict[str, T] = {}
        slices = slices or Slices()
        at = start.end()
        while True:
            if (after := slices.skip(text, at)) > at:
                at = after
                continue
            found = yield from self._slice(text, at, slices)
            if found is None:
                return None
            part, end, is_last = found
            count = len(members) + len(part)
            members.update(part)
            slices.unique = slices.unique and len(members) == count
            if is_last:
                return members, text[: start.end()] + text[end:]
            slices.note(text, at, end)
            at = end

    def is_named_in(self, text: bytes) -> Steps[bool]:
        """Whether there is anything of the table's name."""
        for start in range(0, len(text), _SEARCHED_BYTES):
            if text.find(self.name, start, start + _SEARCHED_BYTES + len(self.name) - 1) >= 0:
                return True
            yield
        return False

    def _slice(self, text: bytes, at: int, slices: Slices) -> Steps[tuple[dict[str, T], int, bool] | None]:
        """Some members from `at` on, where the next ones begin or the table's brace is, and which of both."""
        for end in chain(slices.ends(text, at, at + _REACH), _guesses(text, at)):
            yield
            part = self._read(b"{" + text[at:end] + b"}")
            if part is not None:
                closing = _CLOSING.match(text, end)
                assert closing is not None
                is_last = closing[1] == b"}"
                return part, closing.start(1) if is_last else closing.end(), is_last
        return None

    def _read(self, text: bytes) -> dict[str, T] | None:
        """None for what is no JSON."""
        try:
            return self._strict.decode(text)
        except msgspec.ValidationError:
            pass  # what it is will show when the types are looser
        except _UNREADABLE:
            return None
        try:
            return self._loose.decode(text)
        except msgspec.ValidationError as error:
            raise BodyError(str(error).partition("\n")[0]) from error
        except _UNREADABLE:
            return None


def _only_place(name: bytes, text: bytes) -> Steps[int]:
    """Where the quoted `name` ends; -1 when it is nowhere, or more than once."""
    places: list[int] = []
    for start in range(0, len(text), _SEARCHED_BYTES):
        at, end = start, start + _SEARCHED_BYTES + len(name) - 1
        while len(places) < 2 and (at := text.find(name, at, end)) >= 0:
            at += len(name)
            if text[at - len(name) - 1 : at + 1] == b'"%s"' % name:
                places.append(at + 1)
        yield
    return places[0] if len(places) == 1 else -1


def _guesses(text: bytes, at: int) -> Iterator[int]:
    """Where members may end: far off, nearer and nearer as the table's end comes, and at last that of its last one."""
    reach = at + _REACH
    for pattern, distance, tries in _TRIED:
        position = at + distance
        for _ in range(tries):
            guess = pattern.search(text, position, reach)
            if guess is None:
                break
            position = guess.end()
            yield position
