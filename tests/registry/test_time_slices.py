"""Long work in time slices: it ends with its result, pauses at a slice's end, and all of it shares one slice."""

import pytest

from registry.long_work import time_slices
from registry.long_work.time_slices import SHORT_S, TIME_SLICE_S, cooperatively
from registry.plans import Pause, Plan
from rocketmq_remoting.cooperative import Cooperative


class Clock:
    """Each step of `working` takes a quarter of a time slice by it."""

    def __init__(self) -> None:
        self.now = 0.0

    def working(self, steps: int) -> Cooperative[str]:
        for _ in range(steps):
            self.now += TIME_SLICE_S / 4
            yield
        return "done"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time_slices, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(time_slices._slice, "until", 0.0)
    return clock


def pauses(plan: Plan[str]) -> int:
    """How often it pauses before it ends."""

    def run() -> Plan[None]:
        assert (yield from plan) == "done"

    asked = list(run())
    assert set(asked) <= {Pause(0)}
    return len(asked)


def test_short_work_has_no_pause(clock: Clock) -> None:
    assert pauses(cooperatively(clock.working(0))) == pauses(cooperatively(clock.working(3))) == 0


def test_small_works_do_not_wait_for_one_another(clock: Clock) -> None:
    def small() -> Cooperative[str]:
        clock.now += SHORT_S / 2
        yield
        return "done"

    assert [pauses(cooperatively(small())) for _ in range(100)] == [0] * 100


def test_long_work_pauses_once_a_time_slice(clock: Clock) -> None:
    assert pauses(cooperatively(clock.working(41))) == 10


def test_work_that_follows_has_what_is_left_of_the_time_slice(clock: Clock) -> None:
    counts = [pauses(cooperatively(clock.working(steps))) for steps in (3, 3, 1, 4, 3, 3)]
    assert counts == [0, 1, 0, 1, 1, 1]

    def long_step() -> Cooperative[str]:
        clock.now += TIME_SLICE_S
        return "done"
        yield

    assert pauses(cooperatively(long_step())) == 1


def test_what_is_under_way_at_once_shares_a_time_slice(clock: Clock) -> None:
    other = cooperatively(clock.working(100))
    next(other)
    assert pauses(cooperatively(clock.working(41))) == 19  # its first time slice is a whole one
    other.close()
    clock.now += TIME_SLICE_S
    assert pauses(cooperatively(clock.working(41))) == 10


def test_work_that_fails_has_no_more_time_slices(clock: Clock) -> None:
    def failing() -> Cooperative[str]:
        yield
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        pauses(cooperatively(failing()))
    assert pauses(cooperatively(clock.working(41))) == 10
