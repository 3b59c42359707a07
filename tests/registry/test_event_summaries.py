"""Answers with summaries of the stream equal those without, whatever becomes of either."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import redis as redis_py

from registry.events import pages, summaries, summarizer
from registry.events.entry import FIRST, LAST, Event, EventId, following, preceding
from registry.events.filters import Filter
from registry.events.pages import Page, Range, audit_ranges, event_ranges, read_page
from registry.events.summaries import Summary, summary_or_none
from registry.events.summarizer import Summarizer
from registry.plans import Plan, ScriptCall, ask
from tests.registry.namespace import Namespace
from tests.registry.test_event_filters import ENTRIES, event

TEMPLATES = (
    *ENTRIES.values(),
    event("topics_changed", rows="[[", damaged="T1"),
    event("broker_updated", actor="http:10.0.0.9:1", peer="10.0.0.7:9", broker="b3", also="x"),
    event("topics_changed", cause="wipe", rows=[["b9", "8,8,6,0", "8,8,4,0", [f"W{n}" for n in range(9)]]]),
)
FILTERS = (
    *(Filter(topic=name) for name in ("T1", "T2", "T3", "W3", "none")),
    *(Filter(broker=name) for name in ("b1", "b3", "b9")),
    *(Filter(cluster=name) for name in ("c0", "c2")),
    *(Filter(actor=actor) for actor in ("wire", "10.0.0.9", "http:10.0.0.9", "10.0.0.7:9")),
    Filter(kinds=frozenset({"drain_changed", "checkpoint"}), broker="b1"),
    Filter(topic="T1", checkpoints=True),
    Filter(),
)
EXAMINED = 7


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    """Return a namespace whose stream a test writes, so that it proves nothing of the tables."""
    return Namespace(redis)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks, reads and pages of a few entries."""
    monkeypatch.setattr(summarizer, "BLOCK_ENTRIES", 4)
    monkeypatch.setattr(summarizer, "TERMS_MOST", 30)
    monkeypatch.setattr(summarizer, "READ", 3)
    monkeypatch.setattr(summaries, "AT_ONCE", 1)
    monkeypatch.setattr(summaries, "AT_ONCE_MOST", 3)
    monkeypatch.setattr(pages, "EXAMINED_ENTRIES", EXAMINED)


class History:
    """A stream that grows, shrinks, begins again and falls back, and its summarizers."""

    def __init__(self, ns: Namespace, seed: int) -> None:
        ns.store.flushdb()
        self.ns = ns
        self.random = Random(seed)
        self.ms, self.written = 1_000, 0
        self.summarizers = [Summarizer(ns.keys, rest=0) for _ in range(2)]
        self.saved: dict[str, bytes] = {}
        self.begin()

    def begin(self) -> None:
        """Begin another incarnation, perhaps with times of the one before."""
        self.ns.store.delete(self.ns.keys.events)
        self.ms = max(1, self.ms - self.random.randrange(60))
        self.written += 1
        self.ns.store.hset(self.ns.keys.events_meta, "inc", str(self.written))

    def grow(self) -> None:
        for _ in range(self.random.randrange(1, 14)):
            self.add(self.random.choice(TEMPLATES))

    def add(self, template: Event) -> None:
        self.written += 1
        number = f"{self.written}"
        least = FIRST
        if self.ns.store.exists(self.ns.keys.events):
            least = following(
                EventId.parse(self.ns.store.xinfo_stream(self.ns.keys.events)["last-generated-id"])
            )
        self.ms += self.random.randrange(3)
        entry_id = max(least, EventId(self.ms, self.random.randrange(3)))
        fields: Any = {**template.fields, "seq": number, "op": f"o{number}"}
        self.ns.store.xadd(self.ns.keys.events, fields, id=str(entry_id))

    def summarize(self) -> None:
        self.ns.run(self.random.choice(self.summarizers).run())

    def restart(self) -> None:
        self.summarizers[self.random.randrange(2)] = Summarizer(self.ns.keys, rest=0)

    def trim(self) -> None:
        length = self.ns.store.xlen(self.ns.keys.events)
        self.ns.store.xtrim(self.ns.keys.events, maxlen=self.random.randrange(length + 1), approximate=False)

    def lose_summary(self) -> None:
        for entry_id, _ in self.ns.store.xrange(self.ns.keys.event_summaries):
            if self.random.random() < 0.3:
                self.ns.store.xdel(self.ns.keys.event_summaries, entry_id)

    def damage_summary(self) -> None:
        """Write one of them again, with other bits or bounds."""
        entries = self.ns.store.xrange(self.ns.keys.event_summaries)
        self.ns.store.delete(self.ns.keys.event_summaries)
        for entry_id, fields in entries:
            if self.random.random() < 0.3:
                name = self.random.choice(["v", "inc", "first", "bits", "sum"])
                fields[name] = self.random.choice(["", "AAAA", "0-1", "1", "é", fields[name]])
            self.ns.store.xadd(self.ns.keys.event_summaries, fields, id=entry_id)

    def save(self) -> None:
        store = self.ns.store
        self.saved = {key: store.dump(key) for key in store.scan_iter()}

    def fall_back(self) -> None:
        """Have the store as it was saved; what comes then may have times of what is lost."""
        if self.saved:
            self.ns.store.flushdb()
            for key, value in self.saved.items():
                self.ns.store.restore(key, 0, value)
            self.ms -= self.random.randrange(8)

    def step(self) -> None:
        steps = (self.grow, self.summarize, self.restart, self.trim, self.lose_summary, self.damage_summary)
        rare = (self.begin, self.save, self.fall_back)
        self.random.choices((*steps, *rare), (8, 8, 1, 1, 1, 1, 1, 1, 1))[0]()


def page_of(ns: Namespace, ranges: Plan[Sequence[Range]], wanted: Filter, desc: bool, limit: int) -> Page:
    def plan() -> Plan[Page]:
        return (yield from read_page((yield from ranges), wanted, newest_first=desc, limit=limit))

    return ns.run(plan())


def read(
    ns: Namespace, wanted: Filter, first: EventId, last: EventId, *, desc: bool, limit: int, audit: bool
) -> Iterator[Event]:
    """Yield the entries of page after page."""
    while True:
        ranges = (audit_ranges if audit else event_ranges)(ns.keys, first, last)
        page = page_of(ns, ranges, wanted, desc, limit)
        assert len(page.events) <= limit
        yield from page.events
        if not page.more:
            return
        assert page.examined is not None
        assert first <= page.examined <= last, "each page gets on"
        first, last = (first, preceding(page.examined)) if desc else (following(page.examined), last)


@pytest.mark.parametrize("seed", range(12))
def test_answers_equal_those_without_summaries(ns: Namespace, small: None, seed: int) -> None:
    history = History(ns, seed)
    random = history.random
    for _ in range(60):
        history.step()
        stream = [Event.of(*entry) for entry in ns.store.xrange(ns.keys.events)]
        wanted, desc, audit = random.choice(FILTERS), random.random() < 0.5, random.random() < 0.2
        first, last = FIRST, LAST
        if stream and random.random() < 0.5:
            first, last = sorted((random.choice(stream).id, random.choice(stream).id))
        expected = [
            one
            for one in stream
            if first <= one.id <= last and wanted.wants(one) and (one.is_audited or not audit)
        ]
        limit = random.choice([1, 3, 100])
        listed = [*read(ns, wanted, first, last, desc=desc, limit=limit, audit=audit)]
        assert listed == (expected[::-1] if desc else expected), (wanted, desc, audit, first, last)


def rare(ns: Namespace, count: int, every: int) -> None:
    """Write so many entries of as many topics, of which each hundredth or so is another one."""
    ns.store.hset(ns.keys.events_meta, "inc", "1")
    for number in range(count):
        topic = "rare" if number % every == every // 2 else f"t{number}"
        rows = f'[["b1","","8,8,6,0",["{topic}"]]]'
        fields: Any = {"kind": "topics_changed", "rows": rows, "seq": str(number), "op": f"o{number}"}
        ns.store.xadd(ns.keys.events, fields)


@pytest.mark.parametrize("desc", [False, True])
def test_a_rare_topic_is_found_by_one_page_with_few_looks(
    ns: Namespace, monkeypatch: pytest.MonkeyPatch, desc: bool
) -> None:
    monkeypatch.setattr(summarizer, "BLOCK_ENTRIES", 10)
    monkeypatch.setattr(pages, "EXAMINED_ENTRIES", 40)
    rare(ns, 1_000, 500)
    wanted = Filter(topic="rare")
    assert page_of(ns, event_ranges(ns.keys, FIRST, LAST), wanted, desc, 10).more
    assert ns.run(Summarizer(ns.keys, rest=0).run()) == 100
    page = page_of(ns, event_ranges(ns.keys, FIRST, LAST), wanted, desc, 10)
    assert (len(page.events), page.more) == (2, False)
    newest = EventId.parse(ns.store.xrevrange(ns.keys.events, count=1)[0][0])
    assert desc or page.examined == newest, "where a reader waits for the next entry"


def test_what_a_page_reads_of_summaries_is_bounded(ns: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarizer, "BLOCK_ENTRIES", 2)
    rare(ns, 400, 10_000)
    ns.run(Summarizer(ns.keys, rest=0).run())
    wanted = Filter(topic="none")
    assert not page_of(ns, event_ranges(ns.keys, FIRST, LAST), wanted, False, 10).more
    with monkeypatch.context() as patch:
        patch.setattr(pages, "EXAMINED_CHARACTERS", 500)
        page = page_of(ns, event_ranges(ns.keys, FIRST, LAST), wanted, False, 10)
        assert page.more
        assert page.examined is not None
    monkeypatch.setattr(pages, "PAGE_S", 0.0)
    assert page_of(ns, event_ranges(ns.keys, FIRST, LAST), wanted, False, 10).more


def stored(ns: Namespace) -> list[Summary]:
    entries = ns.store.xrange(ns.keys.event_summaries)
    return [summary for entry in entries if (summary := summary_or_none(entry)) is not None]


def test_blocks_follow_one_another_and_are_kept_for_a_day(ns: Namespace, small: None) -> None:
    rare(ns, 30, 7)
    first, second = (Summarizer(ns.keys, rest=0) for _ in range(2))
    assert (ns.run(first.run()), ns.run(second.run()), ns.run(first.run())) == (7, 0, 0)
    rare(ns, 30, 7)
    assert (ns.run(second.run()), ns.run(first.run())) == (8, 0)
    blocks = stored(ns)
    assert len(blocks) == 15
    assert all(preceding(after.first) == before.last for before, after in pairwise(blocks))
    assert 86_000_000 < ns.store.pttl(ns.keys.event_summaries) <= 86_400_000


def test_summaries_go_with_their_entries(ns: Namespace, small: None) -> None:
    rare(ns, 40, 7)
    job = Summarizer(ns.keys, rest=0)
    ns.run(job.run())
    ns.store.xtrim(ns.keys.events, maxlen=10, approximate=False)
    ns.run(job.run())
    oldest = EventId.parse(ns.store.xrange(ns.keys.events, count=1)[0][0])
    assert len(stored(ns)) == 3
    assert all(summary.last >= oldest for summary in stored(ns))


def test_there_are_two_thousand_summaries_at_most(ns: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarizer, "BLOCK_ENTRIES", 1)
    monkeypatch.setattr(summarizer, "RUN_S", 600.0)
    rare(ns, 2_010, 10_000)
    assert ns.run(Summarizer(ns.keys, rest=0).run()) == 2_010
    assert ns.store.xlen(ns.keys.event_summaries) == 2_000
    assert [
        one.get("seq") for one in read(ns, Filter(topic="t3"), FIRST, LAST, desc=True, limit=9, audit=False)
    ]


def test_entries_of_many_topics_make_short_blocks_and_no_large_summary(
    ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peers that fill the stream with names of which none comes twice."""
    monkeypatch.setattr(summarizer, "BLOCK_ENTRIES", 22)
    ns.store.hset(ns.keys.events_meta, "inc", "1")
    for number in range(40):
        many = 4_000 if number == 20 else 500
        rows = (
            f'[["b1","","8,8,6,0",[{",".join(f"""{chr(34)}n{number}-{i}{chr(34)}""" for i in range(many))}]]]'
        )
        fields: Any = {"kind": "topics_changed", "rows": rows, "seq": str(number), "op": f"o{number}"}
        ns.store.xadd(ns.keys.events, fields)
    ns.run(Summarizer(ns.keys, rest=0).run())
    blocks = stored(ns)
    assert len(blocks) == 4
    assert max(len(summary.bits) for summary in blocks) <= (summarizer.TERMS_MOST + 510) * 12 // 8
    assert sum(not summary.bits for summary in blocks) == 1, "that of the entry that has too many"
    for topic, seq in (("n20-7", "20"), ("n3-499", "3")):
        [one] = read(ns, Filter(topic=topic), FIRST, LAST, desc=True, limit=9, audit=False)
        assert one.get("seq") == seq


def names(ns: Namespace, topic: str, op: str, entry_id: str = "*") -> None:
    """Write an entry about a topic."""
    rows = f'[["b1","","8,8,6,0",["{topic}"]]]'
    ns.store.xadd(ns.keys.events, {"kind": "topics_changed", "rows": rows, "op": op}, id=entry_id)


def count_of(ns: Namespace, topic: str) -> int:
    return len([*read(ns, Filter(topic=topic), FIRST, LAST, desc=False, limit=9, audit=False)])


def test_what_is_read_of_a_block_ends_where_the_store_falls_back(ns: Namespace, small: None) -> None:
    """It goes on with other entries, some of them before what was read here."""
    ns.store.hset(ns.keys.events_meta, "inc", "1")
    names(ns, "t0", "a", "5-0")
    saved = ns.store.dump(ns.keys.events)
    names(ns, "t1", "b", "9-0")
    job = Summarizer(ns.keys, rest=0)
    assert ns.run(job.run()) == 0
    ns.store.restore(ns.keys.events, 0, saved, replace=True)
    names(ns, "lost", "c", "7-0")
    for number in range(10, 20):
        names(ns, f"t{number}", "d", f"{number}-0")
    assert (ns.run(job.run()), ns.run(job.run())) == (0, 3)
    assert count_of(ns, "lost") == 1


def fall_back(ns: Namespace) -> None:
    ns.store.delete(ns.keys.events)
    names(ns, "lost", "other", "13-0")


def be_faster(ns: Namespace) -> None:
    ns.run(Summarizer(ns.keys, rest=0).run())


def begin_again(ns: Namespace) -> None:
    ns.store.hset(ns.keys.events_meta, "inc", "2")


@pytest.mark.parametrize(("meanwhile", "left"), [(fall_back, 0), (be_faster, 1), (begin_again, 0)])
def test_a_summary_is_written_of_what_the_store_has(
    ns: Namespace, small: None, meanwhile: Callable[[Namespace], None], left: int
) -> None:
    ns.store.hset(ns.keys.events_meta, "inc", "1")
    for number in range(10, 14):
        names(ns, f"t{number}", "d", f"{number}-0")
    plan = Summarizer(ns.keys, rest=0).run()
    request = next(plan)
    while not isinstance(request, ScriptCall):
        request = plan.send(ns.run(ask(request)))
    meanwhile(ns)
    assert ns.run(ask(request)) == 0
    assert len(stored(ns)) == left


def test_a_new_stream_has_summaries_of_its_own(ns: Namespace, small: None) -> None:
    """Also where the clock of Redis went back."""
    rare(ns, 8, 4)
    job = Summarizer(ns.keys, rest=0)
    assert ns.run(job.run()) == 2
    ns.store.delete(ns.keys.events)
    begin_again(ns)
    for number in range(10, 15):
        names(ns, f"t{number}", "d", f"{number}-0")
    assert ns.run(job.run()) == 1
    assert [summary.last for summary in stored(ns)] == [EventId(13)]


def test_what_is_before_the_stream_takes_redis_no_walk_through_all(ns: Namespace) -> None:
    """As XREVRANGE of it would."""
    rare(ns, 20, 10)
    first = EventId.parse(ns.store.xrange(ns.keys.events, count=1)[0][0])
    ns.store.config_resetstat()
    for wanted in (Filter(), Filter(topic="rare")):
        ranges = event_ranges(ns.keys, FIRST, preceding(first))
        assert page_of(ns, ranges, wanted, True, 10) == Page((), None, more=False)
    assert "cmdstat_xrevrange" not in ns.store.info("commandstats")


def test_a_key_of_another_type_is_no_reason_to_fail(ns: Namespace) -> None:
    rare(ns, 20, 10)
    ns.store.set(ns.keys.event_summaries, "no stream")
    for desc in (False, True):
        assert len([*read(ns, Filter(topic="rare"), FIRST, LAST, desc=desc, limit=9, audit=False)]) == 2
