"""Memory for long frames: which readers go on, which wait, and which have had time enough."""

import pytest

from worker.transport.long_frames import LongFrames


class Reader:
    def __init__(self) -> None:
        self.resumed = 0

    def read_on(self) -> None:
        self.resumed += 1

    def abort(self, reason: str) -> None:
        raise AssertionError(reason)


class Limiter:
    """For 100 bytes; a frame has 10 s."""

    def __init__(self) -> None:
        self.now = 0.0
        self.frames = LongFrames(lambda: self.now, 100, 10.0)

    def reading(self, length: int) -> Reader:
        """One that may."""
        reader = Reader()
        assert self.frames.begin(reader, length)
        return reader

    def waiting(self, length: int) -> Reader:
        """One that may not yet."""
        reader = Reader()
        assert not self.frames.begin(reader, length)
        return reader


def test_as_many_are_read_as_fit() -> None:
    limiter = Limiter()
    first, _ = limiter.reading(60), limiter.reading(40)
    third = limiter.waiting(50)
    limiter.frames.end(first)
    assert third.resumed == 1


def test_requests_under_way_count_until_they_are_answered() -> None:
    limiter = Limiter()
    limiter.frames.reserve(70)
    waiting = limiter.waiting(40)
    limiter.frames.release(20)
    assert waiting.resumed == 1


def test_no_reader_comes_before_one_that_waits() -> None:
    limiter = Limiter()
    first = limiter.reading(60)
    big, small = limiter.waiting(90), limiter.waiting(10)
    limiter.frames.end(first)
    assert (big.resumed, small.resumed) == (1, 1)
    assert not limiter.frames.begin(Reader(), 1)


def test_those_after_one_that_waits_wait_though_they_would_fit() -> None:
    limiter = Limiter()
    first, _ = limiter.reading(60), limiter.reading(20)
    big, small = limiter.waiting(90), limiter.waiting(10)
    limiter.frames.end(first)
    assert (big.resumed, small.resumed) == (0, 0)


def test_one_that_is_too_big_is_read_alone() -> None:
    limiter = Limiter()
    first = limiter.reading(10)
    big = limiter.waiting(500)
    limiter.frames.end(first)
    assert big.resumed == 1
    after = limiter.waiting(1)
    limiter.frames.end(big)
    assert after.resumed == 1


def test_a_reader_that_gives_up_admits_the_next() -> None:
    limiter = Limiter()
    limiter.reading(60)
    big, small = limiter.waiting(90), limiter.waiting(10)
    limiter.frames.end(big)
    assert (big.resumed, small.resumed) == (0, 1)


def test_the_end_of_a_frame_that_never_began_is_nothing() -> None:
    limiter = Limiter()
    limiter.frames.end(Reader())
    limiter.reading(100)


@pytest.mark.parametrize(
    ("now", "others_wait", "late"),
    [
        pytest.param(11.0, True, True, id="too slow, and others wait"),
        pytest.param(11.0, False, False, id="slow, but no other waits"),
        pytest.param(9.0, True, False, id="still has time"),
    ],
)
def test_a_frame_is_late_only_while_others_wait(now: float, others_wait: bool, late: bool) -> None:
    limiter = Limiter()
    first = limiter.reading(60)
    if others_wait:
        limiter.waiting(60)
    limiter.now = now
    assert limiter.frames.late() == ([first] if late else [])


def test_time_begins_when_a_frame_is_admitted() -> None:
    limiter = Limiter()
    first, second = limiter.reading(60), limiter.waiting(60)
    limiter.waiting(60)
    limiter.now = 8.0
    limiter.frames.end(first)
    limiter.now = 12.0
    assert limiter.frames.late() == []
    limiter.now = 19.0
    assert limiter.frames.late() == [second]
