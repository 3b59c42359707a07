"""Which entries are shown to observers, and by which process."""

import asyncio
from collections.abc import Sequence

import pytest

from registry.errors import StoreUnavailable
from registry.events.entry import Event
from tests.worker.jobs.test_event_counts import event
from worker.jobs.observing import ObservingListener
from worker.watch.follower import ResetCause

GROUP = (event("kv_changed", "put"), event("kv_changed", "delete"))


class Behind:
    """The listener that groups are handed on to."""

    def __init__(self) -> None:
        self.groups: list[Sequence[Event]] = []
        self.calls: list[object] = []
        self.fails = False

    async def apply(self, group: Sequence[Event]) -> None:
        if self.fails:
            raise StoreUnavailable("away")
        self.groups.append(group)

    def emptied(self) -> None:
        self.calls.append("emptied")

    async def reset(self, cause: ResetCause) -> None:
        self.calls.append(cause)


@pytest.mark.parametrize("here", [True, False])
def test_one_that_has_the_claim_shows_each_entry_to_all(here: bool) -> None:
    behind, first, second = Behind(), list[Event](), list[Event]()
    listener = ObservingListener(behind, lambda: here, first.append, second.append)
    asyncio.run(listener.apply(GROUP))
    assert first == second == (list(GROUP) if here else [])
    assert behind.groups == [GROUP]


def test_a_group_that_comes_again_is_shown_once() -> None:
    behind, shown = Behind(), list[Event]()
    listener = ObservingListener(behind, lambda: True, shown.append)
    behind.fails = True
    with pytest.raises(StoreUnavailable):
        asyncio.run(listener.apply(GROUP))
    behind.fails = False
    asyncio.run(listener.apply(GROUP))
    assert shown == list(GROUP)


def test_all_else_is_handed_on() -> None:
    behind = Behind()
    listener = ObservingListener(behind, lambda: True)
    listener.emptied()
    asyncio.run(listener.reset("hole"))
    assert behind.calls == ["emptied", "hole"]
