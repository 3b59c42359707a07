"""Pages of the event stream and of operators' entries: whole, in order, from both ends, and bounded."""

import json
from collections.abc import Iterator

import pytest
import redis as redis_py

from registry.events import pages
from registry.events.entry import FIRST, ID_PART_END, LAST, Event, EventId, following, preceding
from registry.events.filters import Filter
from registry.events.pages import audit_ranges, event_ranges, read_page
from registry.events.trim import AUDITOR, trim
from registry.kv import put
from registry.plans import Plan
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

EVERYTHING = Filter(checkpoints=True)
PLENTY = 1 << 30
BAD_REPORTS = ["x", "{}", '{"id":"99999999999999-0"}', '{"id":"0-0"}']


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    """Return a namespace whose stream is not the name server's alone, so that it proves nothing of the tables."""
    return Namespace(redis)


def page_of(
    ns: Namespace, audit: bool, wanted: Filter, desc: bool, limit: int, after: EventId | None
) -> pages.Page:
    first = FIRST if after is None or desc else following(after)
    last = LAST if after is None or not desc else preceding(after)

    def plan() -> Plan[pages.Page]:
        ranges = yield from (audit_ranges if audit else event_ranges)(ns.keys, first, last)
        return (yield from read_page(ranges, wanted, newest_first=desc, limit=limit))

    return ns.run(plan())


def read(
    ns: Namespace, wanted: Filter = EVERYTHING, *, desc: bool = False, limit: int = 3, audit: bool = False
) -> Iterator[Event]:
    """Yield the entries of page after page."""
    after: EventId | None = None
    while True:
        page = page_of(ns, audit, wanted, desc, limit, after)
        assert len(page.events) <= limit
        yield from page.events
        if not page.more:
            return
        assert page.examined is not None
        assert page.examined != after
        after = page.examined


def some(ns: Namespace, count: int) -> None:
    """Write so many entries: every third of them is an operator's."""
    for number in range(count):
        kind = "kv_changed" if number % 3 == 0 else "news"
        ns.store.xadd(ns.keys.events, {"kind": kind, "seq": str(number), "key": f"k{number}"})


@pytest.mark.parametrize("limit", [1, 3, 100, 1000])
def test_pages_from_both_ends_join_to_the_stream(ns: Namespace, limit: int) -> None:
    some(ns, 500)
    stream = [Event.of(*entry) for entry in ns.store.xrange(ns.keys.events)]
    assert [*read(ns, limit=limit)] == stream
    assert [*read(ns, limit=limit, desc=True)] == stream[::-1]


def test_a_filter_that_matches_little_is_a_page_that_is_short(
    ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    some(ns, 500)
    monkeypatch.setattr(pages, "EXAMINED_ENTRIES", 100)
    ns.store.xadd(ns.keys.events, {"kind": "last"})
    first = page_of(ns, False, Filter(kinds=frozenset({"last"})), False, 10, None)
    assert (first.events, first.more) == ((), True)
    assert first.examined is not None
    assert FIRST < first.examined < EventId.parse(ns.store.xrevrange(ns.keys.events, count=1)[0][0])
    for desc in (False, True):
        assert [event.kind for event in read(ns, Filter(kinds=frozenset({"last"})), desc=desc)] == ["last"]


def test_what_a_page_reads_is_bounded_in_characters_and_in_time(
    ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(150):
        ns.store.xadd(ns.keys.events, {"kind": "news", "text": "x" * 1000})
    none = Filter(kinds=frozenset({"none"}))
    assert not page_of(ns, False, none, False, 10, None).more
    with monkeypatch.context() as patch:
        patch.setattr(pages, "EXAMINED_CHARACTERS", 20_000)
        assert page_of(ns, False, none, False, 10, None).more
    monkeypatch.setattr(pages, "PAGE_S", 0.0)
    page = page_of(ns, False, none, False, 10, None)
    assert page.more
    assert page.examined is not None, "each page gets on"


def test_long_entries_are_read_in_smaller_blocks(ns: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(60):
        ns.store.xadd(ns.keys.events, {"kind": "news", "text": "x" * 50_000})
    counts: list[int] = []
    next_count = pages._Reading.next_count

    def noted(reading: pages._Reading) -> int:
        counts.append(next_count(reading))
        return counts[-1]

    monkeypatch.setattr(pages._Reading, "next_count", noted)
    page_of(ns, False, Filter(kinds=frozenset({"none"})), False, 1000, None)
    assert counts[0] == pages.ENTRIES_AT_ONCE
    assert set(counts[1:]) == {pages.BLOCK_CHARACTERS // 50_004}


def trimmed(ns: Namespace, keep: int) -> None:
    """Copy operators' entries, and drop all but so many of the stream's."""
    ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=PLENTY))
    ns.store.xtrim(ns.keys.events, maxlen=keep, approximate=False)


@pytest.mark.parametrize("desc", [False, True])
def test_operators_entries_are_each_there_once(ns: Namespace, desc: bool) -> None:
    written: list[str] = []

    def operate(count: int) -> None:
        for _ in range(count):
            written.append(ns.run(put(ns.keys, "n", "k", str(len(written)), origin())))
            ns.store.xadd(ns.keys.events, {"kind": "news", "seq": "1"})

    def audited(limit: int) -> list[str]:
        ids = [str(event.id) for event in read(ns, Filter(), desc=desc, limit=limit, audit=True)]
        return ids[::-1] if desc else ids

    for keep in (100, 7, 3, 0):
        operate(5)
        assert audited(2) == written, "not copied yet"
        trimmed(ns, keep)
        assert audited(2) == audited(1000) == written, "copied"
    ns.store.xtrim(ns.keys.audit, maxlen=4, approximate=False)
    assert audited(3) == written[-4:]


@pytest.mark.parametrize("desc", [False, True])
def test_copies_may_be_trimmed_before_their_entries(ns: Namespace, desc: bool) -> None:
    written = [ns.run(put(ns.keys, "n", "k", str(number), origin())) for number in range(9)]
    trimmed(ns, 100)
    ns.store.xtrim(ns.keys.audit, maxlen=4, approximate=False)
    assert sorted(str(e.id) for e in read(ns, Filter(), desc=desc, audit=True)) == sorted(written)
    ns.store.delete(ns.keys.audit)
    assert sorted(str(e.id) for e in read(ns, Filter(), desc=desc, audit=True)) == sorted(written)


def test_copies_made_between_two_pages_are_not_repeated(ns: Namespace) -> None:
    written = [ns.run(put(ns.keys, "n", "k", str(number), origin())) for number in range(9)]
    for desc in (False, True):
        first = page_of(ns, True, Filter(), desc, 4, None)
        trimmed(ns, 100)
        rest = page_of(ns, True, Filter(), desc, 100, first.examined)
        ids = [str(event.id) for event in first.events + rest.events]
        assert (ids[::-1] if desc else ids) == written


def test_copies_made_while_a_page_is_read_are_not_repeated(ns: Namespace) -> None:
    for number in range(3):
        ns.run(put(ns.keys, "n", "k", str(number), origin()))
    trimmed(ns, 100)
    ns.run(put(ns.keys, "n", "k", "3", origin()))
    ranges = ns.run(audit_ranges(ns.keys, FIRST, LAST))
    trimmed(ns, 100)
    page = ns.run(read_page(ranges, Filter(), newest_first=False, limit=100))
    assert [event.get("after") for event in page.events] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("report", BAD_REPORTS)
def test_a_report_of_the_job_that_cannot_be_right_hides_nothing(ns: Namespace, report: str) -> None:
    ns.run(put(ns.keys, "n", "k", "0", origin()))
    trimmed(ns, 100)
    ns.run(put(ns.keys, "n", "k", "1", origin()))
    ns.store.hset(ns.keys.events_consumers, AUDITOR, report)
    assert len([*read(ns, Filter(), audit=True)]) == 2


def test_what_the_job_has_looked_at_is_not_read_again(ns: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last operator's entry may be days old, and a million of others behind it."""
    ns.run(put(ns.keys, "n", "k", "0", origin()))
    some(ns, 2)
    for _ in range(200):
        ns.store.xadd(ns.keys.events, {"kind": "news"})
    trimmed(ns, 100)
    monkeypatch.setattr(pages, "EXAMINED_ENTRIES", 50)
    assert not page_of(ns, True, Filter(), True, 100, None).more
    reported = json.loads(ns.store.hget(ns.keys.events_consumers, AUDITOR) or "")
    assert reported["id"] == ns.store.xrevrange(ns.keys.events, count=1)[0][0]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (EventId(5, 0), EventId(5, 1)),
        (EventId(4, ID_PART_END - 1), EventId(5, 0)),
        (EventId(-1, ID_PART_END - 1), FIRST),
    ],
)
def test_ids_beside_one_another(low: EventId, high: EventId) -> None:
    assert following(low) == high
    assert preceding(high) == low
