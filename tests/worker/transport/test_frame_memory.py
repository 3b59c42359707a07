"""Memory for incomplete frames: which are read on, which wait, which are too slow, and which are cut off."""

from time import process_time

import pytest

from worker.transport.frame_memory import LONG, SMALL, FrameLimits, FrameMemory

K = 1 << 10
LIMITS = FrameLimits(
    known=1000 * K, unknown=750 * K, host=500 * K, admitted=500 * K, waiting=1000 * K, rate=16 * K
)
BIG = 10_000 * K


class Reading:
    def __init__(self, memory: FrameMemory, host: str, known: bool) -> None:
        self.memory, self.host, self.known = memory, host, known
        self.resumed = 0
        self.paused, self.unread = False, 0
        self.aborted: list[str] = []

    def read_on(self) -> None:
        self.resumed += 1

    def abort(self, reason: str) -> None:
        self.aborted.append(reason)

    def grow(self, received: int, length: int = 200 * K) -> bool:
        return self.memory.grow(self, length, received)

    def end(self) -> None:
        self.memory.end(self)


class Memory(FrameMemory):
    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now, LIMITS)

    def reading(self, host: str = "10.0.0.1", *, known: bool = False) -> Reading:
        return Reading(self, host, known)

    def full(self, of: int = LIMITS.unknown) -> list[Reading]:
        """So much is taken, by hosts with their whole share each."""
        found = []
        for number, at in enumerate(range(0, of, LIMITS.host)):
            found.append(self.reading(f"10.1.0.{number}", known=of > LIMITS.unknown))
            assert found[-1].grow(min(LIMITS.host, of - at), BIG)
        return found

    def busy(self, known: bool = False) -> object:
        """A request of such a host is under way, of the size that is admitted."""
        request = object()
        self.reserve(request, LIMITS.admitted, known)
        self.requests = [*getattr(self, "requests", ()), request]  # else the next has its place
        return request

    def looked(self, at: float) -> list[str]:
        """Why readings end when it looks twice a second until then."""
        found: list[str] = []
        while self.now < at:
            self.now += 0.5
            for reading, reason in self.too_slow():
                reading.end()  # type: ignore[attr-defined]
                found.append(reason)
        return found


def test_what_is_only_announced_takes_nothing() -> None:
    memory = Memory()
    for number in range(10_000):
        assert memory.reading(f"10.2.{number >> 8}.{number & 255}").grow(8, 16_000 * K)
    assert memory.taken == 80_000
    assert memory.reading().grow(190 * K)


@pytest.mark.parametrize("known", [False, True])
def test_frames_are_read_as_they_come_while_there_is_room(known: bool) -> None:
    memory = Memory()
    memory.busy()
    memory.full(250 * K)
    reading = memory.reading(known=known)
    assert reading.grow(100 * K, 2000 * K) is known
    reading.end()
    assert memory.taken == LIMITS.unknown


def test_a_host_has_a_share() -> None:
    memory = Memory()
    one, two, other = memory.reading(), memory.reading(), memory.reading("10.0.0.2")
    assert one.grow(500 * K, 600 * K)
    assert two.grow(100 * K)  # waits, and is admitted, for nothing else is
    assert not memory.reading().grow(100 * K, 600 * K)
    assert other.grow(100 * K)


def test_of_those_that_wait_the_one_that_is_whole_soonest_is_admitted() -> None:
    memory = Memory()
    memory.full()
    first = memory.reading()
    assert first.grow(1 * K, 490 * K)
    later, soon = memory.reading(), memory.reading()
    assert not later.grow(10 * K, 490 * K)
    assert not soon.grow(10 * K, 100 * K)
    first.end()
    assert (later.resumed, soon.resumed) == (0, 1)
    soon.end()
    assert later.resumed == 1


def test_those_of_known_hosts_do_not_wait_for_others() -> None:
    memory = Memory()
    memory.full(LIMITS.known)
    stranger = memory.reading()
    assert stranger.grow(1 * K, 16_000 * K)  # one always may
    assert not memory.reading("10.0.0.2").grow(1 * K, 70 * K)
    broker = memory.reading("10.0.0.3", known=True)
    assert broker.grow(64 * K, 16_000 * K)
    assert not memory.reading("10.0.0.4", known=True).grow(64 * K, 16_000 * K)


def test_strangers_wait_for_what_known_hosts_have_under_way() -> None:
    """As the frames of brokers that register for the first time, and are known by the time they are handled."""
    memory = Memory()
    request = memory.busy(known=True)
    memory.full(250 * K)
    stranger = memory.reading("10.9.0.1")
    assert not stranger.grow(100 * K)
    memory.release(request)
    assert stranger.resumed == 1


def test_hosts_with_more_than_their_share_come_last() -> None:
    memory = Memory()
    memory.full(500 * K)
    first = memory.reading("10.9.0.1")
    assert first.grow(400 * K, 490 * K)
    hog, other = memory.reading("10.1.0.0"), memory.reading("10.9.0.2")
    assert not hog.grow(10 * K, 100 * K)
    assert not other.grow(10 * K, 490 * K)
    first.end()
    assert (hog.resumed, other.resumed) == (0, 1)


def test_requests_count_until_they_are_answered() -> None:
    memory, request, small = Memory(), object(), object()
    memory.reserve(request, 500 * K, False)
    memory.full(250 * K)
    reading = memory.reading()
    assert not reading.grow(100 * K)
    assert memory.taken == 850 * K
    memory.release(small)
    assert not reading.resumed
    memory.release(request)
    assert (reading.resumed, memory.taken) == (1, 350 * K)
    memory.release(request)
    assert memory.taken == 350 * K


def test_frames_that_wait_are_bounded_and_strangers_with_most_go_first() -> None:
    memory = Memory()
    memory.busy(known=True)
    memory.busy()
    broker = memory.reading("10.0.0.1", known=True)
    small, hog = memory.reading("10.0.0.2"), memory.reading("10.0.0.3")
    assert not any((broker.grow(600 * K, BIG), small.grow(100 * K, BIG), hog.grow(300 * K, BIG)))
    assert [one.aborted for one in (broker, small, hog)] == [[], [], []]
    more = memory.reading("10.0.0.4")
    assert not more.grow(SMALL, BIG)
    assert [bool(one.aborted) for one in (broker, small, hog, more)] == [False, False, True, False]


def test_all_is_free_at_the_end() -> None:
    memory = Memory()
    readings = [*memory.full(), *(memory.reading(f"10.3.0.{n}", known=n > 4) for n in range(9))]
    for reading in readings[2:]:
        reading.grow(64 * K)
    for reading in readings:
        reading.end()
        reading.end()
    assert memory.taken == 0
    assert all(reading.resumed <= 1 for reading in readings)
    memory.full()


@pytest.mark.parametrize(
    ("length", "received", "cut"),
    [
        pytest.param(16_000 * K, 8, True, id="announced only"),
        pytest.param(LONG, SMALL, False, id="short, and begun"),
        pytest.param(LONG, SMALL + 1, True, id="short, and counted"),
        pytest.param(LONG + 1, SMALL, True, id="long, and begun"),
    ],
)
def test_a_frame_that_stands_still_is_too_slow(length: int, received: int, cut: bool) -> None:
    memory = Memory()
    memory.reading().grow(received, length)
    assert memory.looked(3.5) == []
    reason = "its frame came with less than 16384 bytes a second"
    assert memory.looked(10) == [reason] * cut
    assert memory.taken == (0 if cut or received <= SMALL else received)


@pytest.mark.parametrize(("rate", "cut"), [(15 * K, 1), (17 * K, 0)])
def test_the_rate_that_a_frame_must_keep(rate: int, cut: int) -> None:
    memory = Memory()
    reading, found = memory.reading(), []
    for second in range(1, 20):
        reading.grow(second * rate, BIG)
        found += memory.looked(second)
    assert bool(found) == cut


def test_while_others_wait_half_a_second_tells() -> None:
    memory = Memory()
    memory.full(LIMITS.known)
    stalled = memory.reading()
    assert stalled.grow(10 * K)  # admitted
    waiting = memory.reading("10.0.0.2")
    assert not waiting.grow(10 * K, BIG)
    memory.now = 0.4
    assert memory.too_slow() == []
    memory.now = 0.6
    assert stalled in dict(memory.too_slow())
    assert waiting not in dict(memory.too_slow())


def test_an_admitted_frame_has_its_time_while_others_wait() -> None:
    memory = Memory()
    memory.full(LIMITS.known)
    steady, waiting = memory.reading(), memory.reading("10.0.0.2")
    assert steady.grow(1 * K, BIG)
    assert not waiting.grow(1 * K, BIG)
    for half in range(1, 22):
        memory.now = half / 2
        steady.grow(half * 20 * K, BIG)
        found = dict(memory.too_slow())
        assert (steady in found) is (memory.now > 10)


def test_paused_frames_keep_their_bytes_and_hold_up_no_others() -> None:
    memory = Memory()
    for reading in memory.full():
        reading.paused = True
        reading.grow(LIMITS.host, BIG)
    admitted, waiting = memory.reading("10.2.0.1"), memory.reading("10.2.0.2")
    assert admitted.grow(10 * K, LIMITS.admitted)  # though there is no room
    admitted.paused = True
    assert not waiting.grow(10 * K, LIMITS.admitted)
    reason = "its frame took over 10 s while others waited"
    assert [memory.looked(LIMITS.admitted_s), memory.looked(LIMITS.admitted_s + 1)] == [[], [reason]]
    assert waiting.resumed == 1


def test_a_worker_that_stood_still_cuts_none_off() -> None:
    memory = Memory()
    memory.reading().grow(8, BIG)
    memory.now = 12.0
    assert memory.too_slow() == []
    assert memory.looked(15.5) == []
    assert len(memory.looked(16.5)) == 1


def test_however_many_wait_one_more_costs_the_same() -> None:
    memory = Memory()
    memory.busy()
    memory.full(250 * K)
    began = process_time()
    waiting = [memory.reading(f"10.0.{number & 63}.1") for number in range(10_000)]
    assert not any(one.grow(8, BIG) for one in waiting)
    for one in waiting:
        one.end()
    assert process_time() - began < 5  # it was half a minute: each looked at all the others


def test_a_peer_is_not_slow_while_a_worker_has_not_read_what_it_sent() -> None:
    memory = Memory()
    ahead, trickling = memory.reading(), memory.reading("10.0.0.2")
    ahead.unread, trickling.unread = 80 * K, 40 * K  # of the 64 K that are due each time
    for reading in (ahead, trickling):
        reading.grow(8, BIG)
    assert (len(memory.looked(20)), memory.taken) == (1, 8)
    ahead.unread = 0
    assert memory.looked(23) == []
    assert (len(memory.looked(25)), memory.taken) == (1, 0)
