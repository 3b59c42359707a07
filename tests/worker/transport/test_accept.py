"""When a worker takes a connection, and when it leaves it to its siblings: literal times, no sockets."""

from collections.abc import Callable
from typing import Any

from worker.transport.accept import DEFER_S, PATIENCE_S, Acceptor


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


class Accepted:
    """A connected socket."""

    def fileno(self) -> int:
        return 4


class Listener:
    """A listening socket at which so many wait."""

    waiting = 0

    def fileno(self) -> int:
        return 3

    def accept(self) -> tuple["Accepted", str]:
        if not self.waiting:
            raise BlockingIOError
        self.waiting -= 1
        return Accepted(), "address"

    def close(self) -> None:
        """There is nothing to close."""


class Part:
    """A worker's balance, as the test sets it."""

    exceeded = True
    accepting = False

    def begin(self) -> None:
        self.accepting = True

    def end(self) -> None:
        self.accepting = False


class Scene:
    def __init__(self) -> None:
        self.clock, self.listener, self.balance = Clock(), Listener(), Part()
        self.taken = 0
        loop: Any = self.clock
        sockets: Any = [self.listener]
        balance: Any = self.balance
        self.acceptor = Acceptor(loop, sockets, self._admit, balance)
        self.acceptor.start()

    def _admit(self, accepted: object, address: object) -> None:
        assert isinstance(accepted, Accepted)
        assert address == "address"
        self.taken += 1

    def turn(self, after_s: float = 0.0) -> int:
        """One turn of the loop, so much later; how many have been taken so far."""
        self.clock.go_on(after_s)
        if self.listener.waiting and self.clock.ready is not None:
            self.clock.ready()
        return self.taken

    def arrive(self, count: int = 1) -> None:
        self.listener.waiting += count


def test_a_worker_with_its_part_or_less_accepts_what_comes() -> None:
    scene = Scene()
    scene.balance.exceeded = False
    scene.arrive(3)
    assert [scene.turn() for _ in range(3)] == [1, 2, 3]


def test_a_worker_defers_a_connection_for_a_moment_and_accepts_it_if_no_other_does() -> None:
    scene = Scene()
    for number in range(3):
        scene.arrive()
        assert scene.turn(1.0) == number
        assert scene.turn(DEFER_S / 2) == number
        assert scene.turn(DEFER_S / 2) == number + 1


def test_what_others_have_taken_does_not_make_the_next_one_taken_at_once() -> None:
    scene = Scene()
    scene.arrive()
    assert scene.turn() == 0
    scene.listener.waiting = 0
    assert scene.turn(DEFER_S) == 0
    scene.arrive()
    assert scene.turn(1.0) == 0
    assert scene.turn(DEFER_S) == 1


def test_of_a_crowd_one_is_taken_after_each_moment() -> None:
    scene = Scene()
    scene.arrive(100)
    assert scene.turn() == 0
    assert [scene.turn(DEFER_S) for _ in range(2)] == [1, 1]
    assert [scene.turn(), scene.turn(DEFER_S)] == [1, 2]


def test_a_crowd_that_no_other_worker_accepts_is_not_deferred_for_long() -> None:
    scene = Scene()
    scene.arrive(500)
    turns = 0
    while scene.clock.now <= 100.0 + PATIENCE_S + DEFER_S:
        scene.turn(DEFER_S / 2)
        turns += 1
    before = scene.taken
    assert before < turns
    assert [scene.turn() - before for _ in range(5)] == [1, 2, 3, 4, 5]


def test_after_a_crowd_connections_are_deferred_again() -> None:
    scene = Scene()
    scene.arrive(500)
    while scene.listener.waiting:
        scene.turn(DEFER_S / 2)
    scene.arrive()
    assert scene.turn(1.0) == 500
    assert scene.turn(DEFER_S) == 501


def test_an_acceptor_that_stops_leaves_the_balance() -> None:
    scene = Scene()
    assert scene.balance.accepting
    scene.arrive()
    scene.turn()
    scene.acceptor.stop()
    assert not scene.balance.accepting
    assert scene.turn(DEFER_S) == 0
