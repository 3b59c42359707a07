"""Both ways to take a reply apart give the same page, whatever bytes are in it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_redis_stream.replies import Page, _by_lines, joined, last_id, page_of, page_of_entries

ODD = [b"", b"kind", b"v", b"1", b"*", b"*2", b"$3", b"\r\n", b"a\rb", b"\xff\x00"]
TEXTS = st.one_of(st.sampled_from(ODD), st.binary(max_size=12))
IDS = st.builds(lambda ms, n: b"%d-%d" % (ms, n), st.integers(0, 2**64 - 1), st.integers(0, 3))
FIELDS = st.lists(st.tuples(TEXTS, TEXTS), max_size=12).map(
    lambda pairs: [one for pair in pairs for one in pair]
)
ENTRIES = st.lists(st.tuples(IDS, FIELDS), max_size=8)
Entries = list[tuple[bytes, list[bytes]]]


def reply(entries: Entries) -> memoryview:
    def texts(found: list[bytes]) -> bytes:
        return b"*%d\r\n" % len(found) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in found)

    heads = (
        b"*2\r\n$%d\r\n%s\r\n" % (len(entry_id), entry_id) + texts(fields) for entry_id, fields in entries
    )
    return memoryview(b"*%d\r\n" % len(entries) + b"".join(heads))


def plain(page: Page) -> tuple[object, ...]:
    return page.ids.to_pylist(), page.counts.tolist(), page.names.to_pylist(), page.values.to_pylist()


@given(ENTRIES)
@example([(b"1-0", [b"*1", b"x"])])
@example([(b"1-0", [b"a", b"1\r\n$1\r\nb"])])
@example([])
def test_a_reply_is_what_was_sent(entries: Entries) -> None:
    assert plain(page_of(reply(entries))) == plain(page_of_entries(entries))


def test_plain_text_goes_the_fast_way() -> None:
    long = b"x" * 123_456
    entries: Entries = [(b"%d-0" % n, [b"kind", b"a" * n, b"long", long]) for n in range(200)]
    page = _by_lines(reply(entries))
    assert page is not None
    assert plain(page) == plain(page_of_entries(entries))


def test_where_a_reply_ends_is_seen_at_once() -> None:
    entries: Entries = [(b"%d-%d" % (n, n), [b"kind", b"x" * n]) for n in range(1, 100)]
    assert last_id(reply(entries), 99) == b"99-99"
    assert last_id(reply(entries), 100) is None  # more were asked for: nothing is behind them
    assert last_id(reply([]), 0) is None
    huge: Entries = [(b"1-0", [b"a", b"x" * 10_000])]
    assert last_id(reply(huge), 1) is None
    odd: Entries = [(b"1-0", [b"a", reply([(b"7-7", [])]).tobytes()])]
    assert last_id(reply(odd), 1) == b"7-7"  # which is wrong: a caller that uses it has to check


@given(ENTRIES, st.data())
def test_a_reply_that_is_cut_is_refused(entries: Entries, data: st.DataObject) -> None:
    whole = reply(entries)
    with pytest.raises(ValueError, match="not a reply"):
        page_of(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_small_pages_make_one() -> None:
    entries: Entries = [(b"%d-0" % n, [b"x", b"y" * n] * n) for n in range(9)]
    pages = [page_of_entries(entries[n : n + 2]) for n in range(0, 9, 2)]
    for entries_a_page, most_bytes, sizes in [(1, 1, [2, 2, 2, 2, 1]), (3, 999, [4, 4, 1]), (99, 999, [9])]:
        found = [*joined(pages, entries_a_page, most_bytes)]
        assert [len(page.ids) for page in found] == sizes
        assert [plain(page) for page in joined(found, 99, 999)] == [plain(page_of_entries(entries))]
    assert len([*joined(pages, 99, 20)]) == 4  # large ones are not held back


@pytest.mark.parametrize("text", [b"", b"$3\r\nabc\r\n", b"*1\r\n", b"*0\r\n*0\r\n"])
def test_what_is_no_reply_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a reply"):
        page_of(memoryview(text))
