"""A reply to XRANGE as Arrow arrays, without a Python object for each of its strings.

Where no string of the reply holds a carriage return or begins with a star, which is checked and not assumed, headers
and strings are lines and numpy finds them together; else hiredis takes the reply apart, at a third of the speed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import hiredis
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.integer[Any]]
CR, LF, STAR, DOLLAR, ZERO = b"\r\n*$0"
HEADER_BYTES, TAIL_BYTES = 16, 4096
LAST_ENTRY = re.compile(rb".*\r\n\*2\r\n\$\d+\r\n(\d{1,20}-\d{1,20})\r\n\*.*", re.DOTALL)
LONGEST_LENGTH = 9  # digits; Redis holds strings of up to 512 MB
OFFSETS_MAX = (1 << 31) - 1


class Page(NamedTuple):
    """Some entries of a stream: their ids (`ms-n`), how many fields each has, and names and values of all fields one
    after another. Strings are binary."""

    ids: pa.Array
    counts: Numbers
    names: pa.Array
    values: pa.Array


def page_of(reply: memoryview) -> Page:
    """The entries of a whole reply. ValueError if it is none."""
    return _by_lines(reply) or page_of_entries(_entries(reply))


def last_id(reply: memoryview, entries: int) -> bytes | None:
    """The id of the last entry, if there are so many: found without taking the reply apart, and wrong where the end of
    a value looks like an entry."""
    if bytes(reply[:HEADER_BYTES]).partition(b"\r\n")[0] != b"*%d" % entries:
        return None
    match = LAST_ENTRY.fullmatch(bytes(reply[-TAIL_BYTES:]))
    return match and match[1]


def page_of_entries(entries: Sequence[tuple[bytes, Sequence[bytes]]]) -> Page:
    """The same from Python objects: (id, [name, value, name, value, …])."""
    texts = [text for _, fields in entries for text in fields]
    return Page(
        _binary(entry_id for entry_id, _ in entries),
        np.fromiter((len(fields) // 2 for _, fields in entries), np.int64, len(entries)),
        _binary(texts[0::2]),
        _binary(texts[1::2]),
    )


def joined(pages: Iterable[Page], entries: int, most_bytes: int) -> Iterator[Page]:
    """The same entries in fewer pages, each of so many or, if they are large, of so many bytes: a page costs as much
    as many entries."""
    joined_pages: list[Page] = []
    for page in pages:
        joined_pages.append(page)
        size = sum(page.names.nbytes + page.values.nbytes for page in joined_pages)
        if sum(len(page.ids) for page in joined_pages) >= entries or size >= most_bytes:
            yield _one(joined_pages)
            joined_pages = []
    if joined_pages:
        yield _one(joined_pages)


def _one(pages: list[Page]) -> Page:
    return Page(
        pa.concat_arrays([page.ids for page in pages]),
        np.concatenate([page.counts for page in pages]),
        pa.concat_arrays([page.names for page in pages]),
        pa.concat_arrays([page.values for page in pages]),
    )


def _binary(texts: Iterable[bytes]) -> pa.Array:
    return pa.array(texts, pa.binary())


def _entries(reply: memoryview) -> Any:
    reader = hiredis.Reader()
    reader.feed(bytes(reply))
    entries = reader.gets()
    if not isinstance(entries, list) or reader.has_data():
        raise ValueError("not a reply to XRANGE")
    return entries


def _by_lines(reply: memoryview) -> Page | None:
    """None unless there are as many lines as headers and strings: with the end of a line in a string there are more,
    with a star at its beginning more lists."""
    data = np.frombuffer(reply, np.uint8)
    ends = np.flatnonzero(data == CR).astype(np.int32)
    if not len(ends) or ends[-1] + 2 != len(data) or len(data) > OFFSETS_MAX or (data[ends + 1] != LF).any():
        return None
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 2
    is_list = data[starts] == STAR
    lists = np.flatnonzero(is_list)
    heads, tails = lists[1::2], lists[2::2]  # of an entry (always `*2`), and of its names and values
    texts = _numbers(data, starts[tails] + 1, ends[tails])
    entries = _numbers(data, starts[:1] + 1, ends[:1])[0]
    if len(lists) != 1 + 2 * entries or not _in_order(heads, tails, texts, len(ends)):
        return None
    lines = np.flatnonzero(~is_list)
    lengths, strings = lines[0::2], lines[1::2]
    if (data[starts[lengths]] != DOLLAR).any():
        return None
    bounds = np.empty(2 * len(strings), np.int32)  # every other span of the reply is a string
    bounds[0::2] = starts[strings]
    bounds[1::2] = ends[strings]
    spans = pa.Array.from_buffers(
        pa.binary(), max(len(bounds) - 1, 0), [None, pa.py_buffer(bounds), pa.py_buffer(reply)]
    )
    id_at = np.arange(len(heads)) + np.cumsum(texts) - texts
    is_text = np.ones(len(strings), bool)
    is_text[id_at] = False
    text_at = np.flatnonzero(is_text)
    return Page(
        spans.take(pa.array(2 * id_at)),
        texts // 2,
        spans.take(pa.array(2 * text_at[0::2])),
        spans.take(pa.array(2 * text_at[1::2])),
    )


def _in_order(heads: Numbers, tails: Numbers, texts: Numbers, lines: int) -> bool:
    """Whether each entry's lines follow the entry before: `*2`, length, id, `*texts`, then two lines a text."""
    after = tails + 1 + 2 * texts
    first = np.append(1, after[:-1]) if len(after) else after
    return bool(
        len(heads) == len(tails)
        and (heads == first).all()
        and (tails == heads + 3).all()
        and lines == (after[-1] if len(after) else 1)
    )


def _numbers(data: npt.NDArray[np.uint8], starts: Numbers, ends: Numbers) -> Numbers:
    """The decimal numbers at [starts, ends) of data, 0 for an empty one; nonsense for what is none, or longer."""
    numbers = np.zeros(len(starts), np.int32)
    longer = np.flatnonzero(ends > starts)
    at = starts[longer]
    for _ in range(LONGEST_LENGTH):
        if not len(longer):
            break
        numbers[longer] = numbers[longer] * 10 + (data[at] - ZERO)
        more = ends[longer] > at + 1
        longer, at = longer[more], at[more] + 1
    return numbers
