"""Time slices of connections: in order, and few of them in one iteration of the event loop."""

from collections.abc import Callable

import pytest

from worker.transport.time_slices import SLICE_S, TimeSlices


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> "Loop":
    return Loop(monkeypatch)


class Loop:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("worker.transport.time_slices.perf_counter", lambda: self.now)
        self.calls: list[Callable[[], None]] = []
        self.taken: list[str] = []
        self.slices = TimeSlices(self.calls.append)

    def add(self, name: str, takes_s: float, again: int = 0) -> None:
        def take() -> None:
            self.now += takes_s
            self.taken.append(name)
            if again:
                self.add(name, takes_s, again - 1)

        self.slices.add(take)

    def iterate(self) -> str:
        """Return what was taken in one iteration."""
        calls, self.calls[:], self.taken = self.calls[:], [], []
        for call in calls:
            call()
        return "".join(self.taken)


def test_one_that_takes_its_time_is_alone_in_an_iteration(loop: Loop) -> None:
    for name in "abc":
        loop.add(name, SLICE_S, again=1)
    assert [loop.iterate() for _ in range(7)] == ["a", "b", "c", "a", "b", "c", ""]


def test_short_ones_share_an_iteration_and_none_has_two(loop: Loop) -> None:
    for name in "abcde":
        loop.add(name, SLICE_S / 4, again=1)
    assert [loop.iterate() for _ in range(4)] == ["abcd", "eabc", "de", ""]


def test_one_that_fails_keeps_no_others(loop: Loop) -> None:

    def fail() -> None:
        raise ValueError("a fault")

    loop.slices.add(fail)
    loop.add("a", 0)
    with pytest.raises(ValueError, match="a fault"):
        loop.iterate()
    assert loop.iterate() == "a"
