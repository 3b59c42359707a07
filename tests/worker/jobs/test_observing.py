"""Which entries are shown to observers, by which of several processes, and what of that is repeated."""

import asyncio
import logging
from collections.abc import Callable

import msgspec
import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio

from metrics.catalogue import ADMIN_WRITES
from metrics.samples import Sample
from mqnamesrv.store import EmbeddedStore
from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.events.entry import Event
from registry.events.observed import OBSERVER, READ, Claim, Position
from registry.keys import Keys
from registry.kv import put
from registry.repair.state import claim, release
from registry.store.connect import connect_async
from tests.logged import logged
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.worker.scene import asynchronous
from worker.jobs import event_log, observing
from worker.jobs.event_counts import EventCounts
from worker.jobs.event_log import LINES, EventLog
from worker.jobs.observing import Observer, StreamObserver
from worker.logs.rate_limited_log import RateLimitedLog

KEYS = Keys()


class Seen:
    """An observer that remembers the keys of KV of what it was shown."""

    def __init__(self, at_each: Callable[[str], None] = lambda _: None) -> None:
        self.keys: list[str] = []
        self._at_each = at_each

    def observe(self, event: Event) -> None:
        key = event.get("key")
        if key:
            self._at_each(key)
            self.keys.append(key)

    def recall(self, event: Event) -> None:
        """Nothing is remembered of what others were shown."""


class Process:
    """A scheduler as far as it observes; it claims and releases when a test says so."""

    def __init__(self, name: str, store: redis_asyncio.Redis, *observers: Observer) -> None:
        self.seen = Seen()
        self.published: list[list[str]] = []
        self._name = name
        self.driver = AsyncDriver(store)
        self.observer = StreamObserver(
            self.driver,
            KEYS,
            Claim(name, 30_000),
            *(observers or (self.seen,)),
            publish=lambda: self.published.append([*self.seen.keys]),
        )

    async def claim(self) -> bool:
        return await self.driver.run(claim(KEYS, self._name, origin()))

    async def leave(self) -> None:
        await self.observer.close()
        await self.driver.run(release(KEYS, self._name))

    async def catch_up(self) -> None:
        while await self.observer.observe_next():
            pass


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    return Namespace(redis)


def change(ns: Namespace, *keys: str) -> None:
    for key in keys:
        ns.run(put(KEYS, "n", key, "v", origin()))


@asynchronous
async def test_the_next_process_goes_on_where_one_ended(store: EmbeddedStore, ns: Namespace) -> None:
    first, second = (Process(name, connect_async(store.url)) for name in ("first", "second"))
    change(ns, "a")
    assert await first.claim()
    await first.catch_up()
    await second.catch_up()
    assert (first.seen.keys, second.seen.keys) == (["a"], [])
    await first.leave()
    change(ns, "b", "c")
    assert await second.claim()
    await second.catch_up()
    await first.catch_up()
    assert (first.seen.keys, second.seen.keys) == (["a"], ["b", "c"])
    for process in (first, second):
        await process.driver.close()


@asynchronous
async def test_what_was_counted_is_published_before_the_position_is_written(
    store: EmbeddedStore, ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed between has what it read last shown again."""
    first, second = (Process(name, connect_async(store.url)) for name in ("first", "second"))
    change(ns, "a", "b")
    await first.claim()

    class Killed(Exception):
        pass

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(observing, "write_position", kill)
    with pytest.raises(Killed):
        await first.observer.observe_next()
    monkeypatch.undo()
    assert first.published == [["a", "b"]]
    ns.store.delete(KEYS.repair_walker)  # it has ended
    await second.claim()
    await second.catch_up()
    assert second.seen.keys == ["a", "b"]
    for process in (first, second):
        await process.driver.close()


@asynchronous
async def test_one_that_stood_still_before_it_showed_anything_shows_nothing(
    store: EmbeddedStore, ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, other = (Process(name, connect_async(store.url)) for name in ("stopped", "other"))
    change(ns, "a", "b")
    await stopped.claim()
    times = iter((1_000.0, 1_060.0))
    monkeypatch.setattr(observing, "boot_time", lambda: next(times))
    await stopped.observer.observe_next()
    monkeypatch.undo()
    ns.store.delete(KEYS.repair_walker)
    await other.claim()
    await other.catch_up()
    assert (stopped.seen.keys, other.seen.keys) == ([], ["a", "b"])
    for process in (stopped, other):
        await process.driver.close()


@asynchronous
async def test_one_that_stood_still_among_entries_shows_no_more_and_sets_nothing_back(
    store: EmbeddedStore, ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops when it has shown `b`, and goes on after another process has taken over and has come to the end."""
    now_s, behind = 1_000.0, ""
    monkeypatch.setattr(observing, "boot_time", lambda: now_s)

    def stop(key: str) -> None:
        nonlocal now_s, behind
        if key == "b":
            now_s += 60.0
            ns.store.set(KEYS.repair_walker, "other")
            [(last, _)] = ns.store.xrevrange(KEYS.events, count=1)
            behind = msgspec.json.encode(Position(last, 5)).decode()
            ns.store.hset(KEYS.events_consumers, OBSERVER, behind)

    seen = Seen(stop)
    stopped = Process("stopped", connect_async(store.url), seen)
    change(ns, *"abcd")
    await stopped.claim()
    await stopped.catch_up()
    change(ns, "e")
    await stopped.catch_up()
    await stopped.driver.close()
    assert seen.keys == ["a", "b"]
    assert ns.store.hget(KEYS.events_consumers, OBSERVER) == behind


@asynchronous
async def test_the_position_is_written_though_its_process_ends(store: EmbeddedStore, ns: Namespace) -> None:
    first, second = (Process(name, connect_async(store.url)) for name in ("first", "second"))
    change(ns, "a")
    await first.claim()
    task = asyncio.create_task(first.observer.run())
    while not first.published:
        await asyncio.sleep(0)  # shown just now, and not written
    task.cancel()
    await first.leave()
    await second.claim()
    await second.catch_up()
    assert (first.seen.keys, second.seen.keys) == (["a"], [])
    for process in (first, second):
        await process.driver.close()


@asynchronous
async def test_entries_that_are_gone_are_counted_in_the_log(
    store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process("p", connect_async(store.url))
    change(ns, "a")
    await process.claim()
    await process.catch_up()
    change(ns, *"bcdef")
    ns.store.xtrim(KEYS.events, maxlen=2, approximate=False)
    await process.catch_up()
    await process.driver.close()
    assert process.seen.keys == ["a", "e", "f"]
    [line] = logged(caplog)
    assert line.startswith("3 changes before ")


@asynchronous
async def test_an_observer_that_fails_keeps_nothing_up(
    store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_at_a(key: str) -> None:
        if key == "a":
            raise KeyError(key)

    failing, seen = Seen(fail_at_a), Seen()
    process = Process("p", connect_async(store.url), failing, seen)
    change(ns, "a", "b")
    await process.claim()
    await process.catch_up()
    await process.driver.close()
    assert (failing.keys, seen.keys) == (["b"], ["a", "b"])
    assert "cannot be logged or counted: KeyError('a')" in logged(caplog)[0]


@asynchronous
async def test_one_that_is_far_behind_counts_all_and_logs_a_few(
    store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lines, counts = EventLog(), EventCounts()
    process = Process("p", connect_async(store.url), lines, counts)
    many = READ * 2 + 10
    change(ns, *(f"k{n}" for n in range(many)))
    await process.claim()
    await process.catch_up()
    lines.close()
    await process.driver.close()
    messages = [line.getMessage() for line in caplog.records if line.name == event_log.__name__]
    assert messages.count("kv_changed put") == LINES
    assert messages[-1] == f"kv_changed put: {many - LINES} more within 10 s, see `mqns events`"
    assert _acts(counts) == many


@asynchronous
async def test_an_act_with_many_entries_is_one_over_a_hand_over(
    store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counted = [EventCounts() for _ in range(2)]
    first, second = (
        Process(str(place), connect_async(store.url), EventLog(), counts)
        for place, counts in enumerate(counted)
    )
    wiped = {"kind": "topics_changed", "cause": "wipe", "op": "op1", "actor": "wire:a", "inc": "1"}
    for seq, process in enumerate((first, second), 1):
        ns.store.xadd(KEYS.events, {**wiped, "seq": str(seq)})
        await process.claim()
        await process.catch_up()
        await process.leave()
        await process.driver.close()
    assert [_acts(counts) for counts in counted] == [1, 0]
    assert [line.getMessage() for line in caplog.records if line.name == event_log.__name__] == [
        "topics_changed wipe"
    ]


@asynchronous
async def test_an_idle_one_reports_now_and_then(store: EmbeddedStore, ns: Namespace) -> None:
    change(ns, "a")
    reported = []
    for _ in range(2):
        process = Process("p", connect_async(store.url))
        await process.claim()
        for _ in range(2):
            await process.catch_up()
            written = Position.parse(ns.store.hget(KEYS.events_consumers, OBSERVER) or "")
            reported.append(written.at_ms)
        await process.driver.close()
        written.at_ms = 1
        ns.store.hset(KEYS.events_consumers, OBSERVER, msgspec.json.encode(written))
    assert reported[0] == reported[1] > 1
    assert reported[2] == reported[3] > reported[1]


def _acts(counts: EventCounts) -> float:
    return sum(
        read.value for read in counts.read() if isinstance(read, Sample) and read.metric is ADMIN_WRITES
    )


@asynchronous
async def test_the_end_of_an_outage_is_logged_once(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(observing, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(observing, "log", RateLimitedLog(logging.getLogger(observing.__name__)))
    async with connect_async(store.url) as connection:
        observer = Process("one", connection).observer
        outcomes: list[Exception | None] = [None, StoreUnavailable("away"), None, None]

        async def observe_next() -> bool:
            if not outcomes:
                raise asyncio.CancelledError
            if (outcome := outcomes.pop(0)) is not None:
                raise outcome
            return False

        monkeypatch.setattr(observer, "observe_next", observe_next)
        with pytest.raises(asyncio.CancelledError):
            await observer.run()
    assert [line.partition(":")[0] for line in logged(caplog)] == [
        "changes are not logged and counted now, but later",
        "changes are logged and counted again",
    ]
