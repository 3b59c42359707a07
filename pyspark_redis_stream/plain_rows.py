"""JSON such as `[["a","b",["c","d"]],["e","f",["g"]]]`, rows of texts with a list of texts at their end, taken apart by
numpy, without a Python object for each text.

So it goes where each text stands for itself (ASCII, no escapes), nothing is between them but what must be, and no list
is empty; which is checked and not assumed.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.integer[Any]]
QUOTE, ESCAPE, FIRST_PLAIN, LAST_PLAIN = b'"\\ ~'
BEGIN = b"[["
NOTHING, COMMA, OPEN, NEXT, END = range(5)  # what is behind a string
BEHIND = {COMMA: b",", OPEN: b",[", NEXT: b"]],[", END: b"]]]"}


class Strings(NamedTuple):
    """Between quotation marks: of which text each is, and where in the data."""

    owners: Numbers
    starts: Numbers
    ends: Numbers


def can_hold(kind: pa.DataType) -> bool:
    """Whether lists of `kind` are such rows."""
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return False
    *texts, last = [member.type for member in kind.value_type]
    return (
        bool(texts)
        and all(map(pa.types.is_string, texts))
        and pa.types.is_list(last)
        and pa.types.is_string(last.value_type)
    )


def lists(kind: pa.DataType, texts: pa.Array) -> tuple[pa.Array, Flags]:
    """An array of `kind`, null where a text (binary) is null or of another form; and which are of another form."""
    columns = kind.value_type.num_fields - 1
    bounds, held = _held(texts)
    data = np.frombuffer(held, np.uint8)
    missing = np.asarray(texts.is_null())
    odd = _not_plain(data, bounds) & ~missing
    strings = _strings(data, bounds, ~(missing | odd))
    behind = _behind(data, bounds, strings)
    places = _places(strings, behind)
    wanted = np.where(places < columns, np.where(places < columns - 1, COMMA, OPEN), behind)
    wrong = (behind != wanted) | (behind == NOTHING) | ((places >= columns) & (behind == OPEN))
    odd[strings.owners[wrong | ~_begins(data, bounds, strings)]] = True
    plain = ~odd[strings.owners]
    return _made(kind, held, Strings(*(each[plain] for each in strings)), places[plain], missing | odd), odd


def _held(texts: pa.Array) -> tuple[Numbers, pa.Buffer]:
    """Where each text begins and ends among the bytes of all."""
    _, offsets, held = texts.buffers()
    if not len(texts):
        return np.zeros(1, np.int32), pa.py_buffer(b"")
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, last = bounds[0], bounds[-1]
    return bounds - first, held.slice(first, last - first) if held else pa.py_buffer(b"")


def _not_plain(data: Bytes, bounds: Numbers) -> Flags:
    """Texts with bytes that do not stand for themselves, or without strings, or with one that does not end."""
    special = np.flatnonzero((data < FIRST_PLAIN) | (data > LAST_PLAIN) | (data == ESCAPE))
    result = np.zeros(len(bounds) - 1, bool)
    result[np.searchsorted(bounds, special, "right") - 1] = True
    quotes = np.diff(np.searchsorted(np.flatnonzero(data == QUOTE), bounds))
    result[(quotes == 0) | (quotes % 2 == 1)] = True
    return result


def _strings(data: Bytes, bounds: Numbers, plain: Flags) -> Strings:
    """Return where the strings of these texts begin and end, of the plain ones among them."""
    quotes = np.flatnonzero(data == QUOTE)
    owners = np.repeat(np.arange(len(plain)), np.diff(np.searchsorted(quotes, bounds)))
    quotes, owners = quotes[plain[owners]], owners[plain[owners]]
    return Strings(owners[0::2], quotes[0::2] + 1, quotes[1::2])


def _behind(data: Bytes, bounds: Numbers, strings: Strings) -> Numbers:
    """Which of BEHIND follows each string, up to the next one or the end of its text."""
    owners, starts, ends = strings
    last = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
    until = np.where(last, bounds[owners + 1], np.append(starts[1:] - 1, 0)[: len(starts)])
    padded = np.append(data, np.zeros(4, np.uint8))
    result = np.full(len(owners), NOTHING)
    for code, text in BEHIND.items():
        same = (until - ends - 1 == len(text)) & (last == (code == END))
        for at, byte in enumerate(text, 1):
            same &= padded[np.minimum(ends + at, len(data))] == byte
        result[same] = code
    return result


def _places(strings: Strings, behind: Numbers) -> Numbers:
    """Return the place of each string in its row."""
    owners = strings.owners
    begins = np.append(True, (owners[1:] != owners[:-1]) | (behind[:-1] == NEXT))[: len(owners)]
    numbers = np.arange(len(owners))
    return numbers - np.maximum.accumulate(np.where(begins, numbers, 0))


def _begins(data: Bytes, bounds: Numbers, strings: Strings) -> Flags:
    """Whether the text of each string begins with BEGIN and a string."""
    at = bounds[strings.owners]
    right = np.ones(len(at), bool)
    for place, byte in enumerate(BEGIN + b'"'):
        right &= data[np.minimum(at + place, len(data) - 1)] == byte
    return right


def _made(kind: pa.DataType, held: pa.Buffer, strings: Strings, places: Numbers, without: Flags) -> pa.Array:
    columns = kind.value_type.num_fields - 1
    between = np.empty(2 * len(places), np.int32)  # every other span is a string
    between[0::2], between[1::2] = strings.starts, strings.ends
    spans = pa.Array.from_buffers(pa.utf8(), max(len(between) - 1, 0), [None, pa.py_buffer(between), held])
    rows = np.flatnonzero(places == 0)
    arrays = [spans.take(pa.array(2 * (rows + column))) for column in range(columns)]
    within = spans.take(pa.array(2 * np.flatnonzero(places >= columns)))
    lengths = np.diff(np.append(rows, len(places))) - columns
    arrays.append(pa.ListArray.from_arrays(_offsets(lengths), within, type=kind.value_type[columns].type))
    structs = pa.StructArray.from_arrays(arrays, fields=list(kind.value_type))
    counts = np.bincount(strings.owners[rows], minlength=len(without))
    return pa.ListArray.from_arrays(_offsets(counts), structs, type=kind, mask=pa.array(without))


def _offsets(lengths: Numbers) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)
