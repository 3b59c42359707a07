"""When a worker takes a connection, and when it leaves it to its siblings: literal times, no sockets."""

from collections.abc import Callable
from typing import Any

from worker.accept import LEAVE_S, PATIENCE_S, Acceptor


class Clock:
    """The part of an event loop that an acceptor uses; time goes on when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ready: Callable[[], object] | None = None
        self._later: list[tuple[float, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now

    def add_reader(self, _fd: int, ready: Callable[[Any], object], listener: object) -> None:
        self.ready = lambda: ready(listener)

    def remove_reader(self, _fd: int) -> None:
        self.ready = None

    def call_later(self, after_s: float, call: Callable[[Any], object], listener: object) -> None:
        self._later.append((self.now + after_s, lambda: call(listener)))

    def go_on(self, for_s: float) -> None:
        self.now += for_s
        due = [call for at, call in self._later if at <= self.now]
        self._later = [one for one in self._later if one[0] > self.now]
        for call in due:
            call()


class Listener:
    """A listening socket at which so many wait."""

    waiting = 0

    def fileno(self) -> int:
        return 3

    def accept(self) -> tuple[str, str]:
        if not self.waiting:
            raise BlockingIOError
        self.waiting -= 1
        return "socket", "address"

    def close(self) -> None:
        """Nothing to let go of."""


class Part:
    """A worker's share."""

    exceeded = True
    accepting = False

    def begin(self) -> None:
        self.accepting = True

    def end(self) -> None:
        self.accepting = False


class Scene:
    def __init__(self) -> None:
        self.clock, self.listener, self.share = Clock(), Listener(), Part()
        self.taken = 0
        loop: Any = self.clock
        sockets: Any = [self.listener]
        share: Any = self.share
        self.acceptor = Acceptor(loop, sockets, self._admit, share)
        self.acceptor.start()

    def _admit(self, accepted: object, address: object) -> None:
        assert (accepted, address) == ("socket", "address")
        self.taken += 1

    def turn(self, after_s: float = 0.0) -> int:
        """One turn of the loop, so much later; how many have been taken so far."""
        self.clock.go_on(after_s)
        if self.listener.waiting and self.clock.ready is not None:
            self.clock.ready()
        return self.taken

    def arrive(self, count: int = 1) -> None:
        self.listener.waiting += count


def test_who_has_its_part_or_less_takes_what_comes() -> None:
    scene = Scene()
    scene.share.exceeded = False
    scene.arrive(3)
    assert [scene.turn() for _ in range(3)] == [1, 2, 3]


def test_a_connection_is_left_to_others_for_a_moment_and_taken_if_nobody_does() -> None:
    scene = Scene()
    for number in range(3):
        scene.arrive()
        assert scene.turn(1.0) == number
        assert scene.turn(LEAVE_S / 2) == number
        assert scene.turn(LEAVE_S / 2) == number + 1


def test_what_others_have_taken_does_not_make_the_next_one_taken_at_once() -> None:
    scene = Scene()
    scene.arrive()
    assert scene.turn() == 0
    scene.listener.waiting = 0
    assert scene.turn(LEAVE_S) == 0
    scene.arrive()
    assert scene.turn(1.0) == 0
    assert scene.turn(LEAVE_S) == 1


def test_of_a_crowd_one_is_taken_after_each_moment() -> None:
    scene = Scene()
    scene.arrive(100)
    assert scene.turn() == 0
    assert [scene.turn(LEAVE_S) for _ in range(2)] == [1, 1]
    assert [scene.turn(), scene.turn(LEAVE_S)] == [1, 2]


def test_a_crowd_that_nobody_else_takes_is_not_left_for_long() -> None:
    scene = Scene()
    scene.arrive(500)
    turns = 0
    while scene.clock.now <= 100.0 + PATIENCE_S + LEAVE_S:
        scene.turn(LEAVE_S / 2)
        turns += 1
    before = scene.taken
    assert before < turns
    assert [scene.turn() - before for _ in range(5)] == [1, 2, 3, 4, 5]


def test_after_a_crowd_connections_are_left_to_others_again() -> None:
    scene = Scene()
    scene.arrive(500)
    while scene.listener.waiting:
        scene.turn(LEAVE_S / 2)
    scene.arrive()
    assert scene.turn(1.0) == 500
    assert scene.turn(LEAVE_S) == 501


def test_who_stops_has_no_share_any_more() -> None:
    scene = Scene()
    assert scene.share.accepting
    scene.arrive()
    scene.turn()
    scene.acceptor.stop()
    assert not scene.share.accepting
    assert scene.turn(LEAVE_S) == 0
