"""An alarm for the ends of rights: the first one counts, whenever it came to be known."""

import asyncio

from testbed.virtual_time import now, run
from worker.alarm import Alarm


def woken_at(*known: float, later: dict[float, float] | None = None, most_s: float = 1.0) -> float:
    """Return when it wakes what waits; `later` are ends by when they are added."""

    async def wait() -> float:
        alarm = Alarm(now, asyncio.sleep)
        for end in known:
            alarm.add(end)
        loop = asyncio.get_running_loop()
        for at, end in (later or {}).items():
            loop.call_later(at, alarm.add, end)
        await alarm.wait(most_s)
        return round(now(), 3)

    return run(wait())


def test_it_wakes_at_the_first_end_or_in_the_time_given() -> None:
    assert woken_at() == 1.0
    assert woken_at(7.0) == 1.0
    assert woken_at(0.7, 0.4, 0.9) == 0.4
    assert woken_at(-1.0) == 0.0


def test_an_end_that_comes_to_be_known_meanwhile_counts() -> None:
    assert woken_at(0.9, later={0.1: 0.3}) == 0.3
    assert woken_at(0.9, later={0.1: 0.6, 0.2: 0.5, 0.3: 0.8}) == 0.5
    assert woken_at(later={0.1: 3.0}) == 1.0
    assert woken_at(later={0.5: 0.2}) == 0.5


def test_others_are_forgotten_once_it_is_set() -> None:
    async def first() -> tuple[bool, bool]:
        alarm = Alarm(now, asyncio.sleep)
        alarm.add(2.0)
        alarm.set(5.0)
        return alarm.is_over(4.9), alarm.is_over(5.0)

    assert run(first()) == (False, True)
