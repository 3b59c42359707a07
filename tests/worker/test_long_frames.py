"""Room for long frames: who reads on, who waits, and who has had time enough."""

import pytest

from worker.long_frames import LongFrames


class Reader:
    def __init__(self) -> None:
        self.told = 0

    def read_on(self) -> None:
        self.told += 1

    def abort(self, reason: str) -> None:
        raise AssertionError(reason)


class Room:
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


def test_as_many_are_read_as_there_is_room_for() -> None:
    room = Room()
    first, _ = room.reading(60), room.reading(40)
    third = room.waiting(50)
    room.frames.end(first)
    assert third.told == 1


def test_requests_under_way_take_room_until_they_are_answered() -> None:
    room = Room()
    room.frames.hold(70)
    waiting = room.waiting(40)
    room.frames.free(20)
    assert waiting.told == 1


def test_nobody_comes_before_who_waits() -> None:
    room = Room()
    first = room.reading(60)
    big, small = room.waiting(90), room.waiting(10)
    room.frames.end(first)
    assert (big.told, small.told) == (1, 1)
    assert not room.frames.begin(Reader(), 1)


def test_those_after_one_that_waits_wait_though_there_is_room() -> None:
    room = Room()
    first, _ = room.reading(60), room.reading(20)
    big, small = room.waiting(90), room.waiting(10)
    room.frames.end(first)
    assert (big.told, small.told) == (0, 0)


def test_one_that_is_too_big_is_read_alone() -> None:
    room = Room()
    first = room.reading(10)
    big = room.waiting(500)
    room.frames.end(first)
    assert big.told == 1
    after = room.waiting(1)
    room.frames.end(big)
    assert after.told == 1


def test_who_gives_up_waiting_lets_the_next_go_on() -> None:
    room = Room()
    room.reading(60)
    big, small = room.waiting(90), room.waiting(10)
    room.frames.end(big)
    assert (big.told, small.told) == (0, 1)


def test_the_end_of_a_frame_that_never_began_is_nothing() -> None:
    room = Room()
    room.frames.end(Reader())
    room.reading(100)


@pytest.mark.parametrize(
    ("now", "others_wait", "late"),
    [
        pytest.param(11.0, True, True, id="too slow, and others wait"),
        pytest.param(11.0, False, False, id="slow, but nobody waits"),
        pytest.param(9.0, True, False, id="still has time"),
    ],
)
def test_a_frame_has_its_time_only_while_nobody_waits(now: float, others_wait: bool, late: bool) -> None:
    room = Room()
    first = room.reading(60)
    if others_wait:
        room.waiting(60)
    room.now = now
    assert room.frames.late() == ([first] if late else [])


def test_time_begins_when_there_is_room() -> None:
    room = Room()
    first, second = room.reading(60), room.waiting(60)
    room.waiting(60)
    room.now = 8.0
    room.frames.end(first)
    room.now = 12.0
    assert room.frames.late() == []
    room.now = 19.0
    assert room.frames.late() == [second]
