"""Watchers that do not read: what they hold, and which have to go first."""

from typing import Any

from api.watchers.stalled import Stalled
from api.watchers.watcher import Audience, Block, Watcher
from registry.events.watched import Wanted


def watcher() -> Watcher:
    outlet: Any = None
    return Watcher(Audience(Wanted()), None, outlet, 0.0)


def gone(stalled: Stalled, now: float) -> list[Watcher]:
    found = []
    for one in stalled.overdue(now):
        stalled.remove(one)
        found.append(one)
    return found


def test_each_has_some_time() -> None:
    stalled, first, second = Stalled(100, 5.0), watcher(), watcher()
    stalled.add(first, Block(b"x"), 1.0)
    stalled.add(second, Block(b"x"), 2.0)
    assert gone(stalled, 5.9) == []
    assert gone(stalled, 6.0) == [first]
    assert gone(stalled, 7.0) == [second]


def test_what_many_hold_counts_once() -> None:
    stalled, block = Stalled(100, 5.0), Block(b"x" * 90)
    many = [watcher() for _ in range(10)]
    for one in many:
        stalled.add(one, block, 1.0)
    assert gone(stalled, 1.0) == []
    alone = watcher()
    stalled.add(alone, Block(b"y" * 90), 2.0)
    assert gone(stalled, 2.0) == many  # the longest stalled first, until what is left fits
    assert alone.stalled is not None


def test_what_was_read_is_held_no_more() -> None:
    stalled, block = Stalled(100, 5.0), Block(b"x" * 90)
    first, second = watcher(), watcher()
    stalled.add(first, block, 1.0)
    stalled.add(second, block, 1.0)
    stalled.remove(first)
    stalled.remove(first)
    stalled.remove(second)
    stalled.add(first, Block(b"y" * 90), 2.0)
    assert gone(stalled, 2.0) == []
    assert gone(stalled, 7.0) == [first]


def test_a_watcher_is_spread_over_the_seconds_of_heartbeats() -> None:
    assert len({watcher().turn for _ in range(200)}) > 5
