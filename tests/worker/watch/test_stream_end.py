"""Where a stream ended, by ids alone: how late its reader is, and what a reset covers."""

from typing import Any

import pytest

from registry.events.entry import EventId
from tests.worker.scene import asynchronous
from worker.watch import stream_end
from worker.watch.stream_end import COUNT, StreamEnd


class Stream:
    """A store whose stream has the entries 1-0 to `last`-0."""

    def __init__(self) -> None:
        self.last = 0
        self.asked = 0

    async def xrevrange(self, key: str, count: int) -> list[tuple[str, dict[str, str]]]:
        self.asked += 1
        return [(f"{self.last}-0", {})]


class Clock:
    now_s = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stream_end, "boot_time", lambda: clock.now_s)
    return clock


async def read(end: StreamEnd, stream: Any, position: int) -> int:
    """Read and apply what comes behind `position`; return the place that was reached."""
    to: int = min(position + COUNT, stream.last)
    await end.see(stream, [f"{number}-0" for number in range(position + 1, to + 1)] or [f"{position}-0"], 1.0)
    end.applied(EventId(to))
    return to


@asynchronous
async def test_a_reader_is_as_late_as_what_it_has_not_applied(clock: Clock) -> None:
    end, stream, position = StreamEnd("events"), Stream(), 0
    stream.last = 10 * COUNT + 1
    for reads in range(1, 11):
        clock.now_s += 1
        position = await read(end, stream, position)
        assert end.behind_s() == reads
    await read(end, stream, position)
    assert (end.behind_s(), stream.asked) == (0, 1)


@asynchronous
async def test_a_reader_that_never_sees_the_end_and_keeps_up_is_not_late(clock: Clock) -> None:
    end, stream, position = StreamEnd("events"), Stream(), 0
    stream.last = 2 * COUNT
    for _ in range(100):
        clock.now_s += 1
        stream.last += COUNT
        position = await read(end, stream, position)
    assert 1 <= end.behind_s() <= 6


@asynchronous
async def test_a_reset_covers_what_the_stream_had(clock: Clock) -> None:
    end, stream = StreamEnd("events"), Stream()
    stream.last = 5 * COUNT
    await read(end, stream, 0)
    assert not end.covers("unreadable", EventId(1))
    end.was_reset("unreadable")
    assert end.covers("unreadable", EventId(stream.last))
    assert not end.covers("unreadable", EventId(stream.last + 1))
    assert not end.covers("hole", EventId(1))
    end.forget()
    assert not end.covers("unreadable", EventId(1))
