"""Long work in turns: it ends with its result, pauses when it has had its turn, and all of it shares one turn."""

import pytest

from registry import turns
from registry.plans import Pause, Plan
from registry.turns import SHORT_S, TURN_S, in_turns
from remoting.steps import Steps


class Clock:
    """Each step of `working` takes a quarter of a turn by it."""

    def __init__(self) -> None:
        self.now = 0.0

    def working(self, steps: int) -> Steps[str]:
        for _ in range(steps):
            self.now += TURN_S / 4
            yield
        return "done"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(turns._turn, "until", 0.0)
    return clock


def pauses(plan: Plan[str]) -> int:
    """How often it pauses before it ends."""

    def run() -> Plan[None]:
        assert (yield from plan) == "done"

    asked = list(run())
    assert set(asked) <= {Pause(0)}
    return len(asked)


def test_short_work_has_no_pause(clock: Clock) -> None:
    assert pauses(in_turns(clock.working(0))) == pauses(in_turns(clock.working(3))) == 0


def test_small_works_do_not_wait_for_one_another(clock: Clock) -> None:
    def small() -> Steps[str]:
        clock.now += SHORT_S / 2
        yield
        return "done"

    assert [pauses(in_turns(small())) for _ in range(100)] == [0] * 100


def test_long_work_pauses_once_a_turn(clock: Clock) -> None:
    assert pauses(in_turns(clock.working(41))) == 10


def test_work_that_follows_has_what_is_left_of_the_turn(clock: Clock) -> None:
    counts = [pauses(in_turns(clock.working(steps))) for steps in (3, 3, 1, 4, 3, 3)]
    assert counts == [0, 1, 0, 1, 1, 1]

    def long_step() -> Steps[str]:
        clock.now += TURN_S
        return "done"
        yield

    assert pauses(in_turns(long_step())) == 1


def test_what_is_under_way_at_once_shares_a_turn(clock: Clock) -> None:
    other = in_turns(clock.working(100))
    next(other)
    assert pauses(in_turns(clock.working(41))) == 19  # its first turn is a whole one
    other.close()
    clock.now += TURN_S
    assert pauses(in_turns(clock.working(41))) == 10


def test_work_that_fails_has_its_turns_no_more(clock: Clock) -> None:
    def failing() -> Steps[str]:
        yield
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        pauses(in_turns(failing()))
    assert pauses(in_turns(clock.working(41))) == 10
