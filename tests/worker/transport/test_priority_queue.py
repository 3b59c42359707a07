"""The next of the items that wait."""

import gc
import weakref

from hypothesis import example, given
from hypothesis import strategies as st

from worker.transport.priority_queue import GONE_MOST, Priority, PriorityQueue

KINDS = ["add", "discard", "grow", "next"]


def acts(kinds: list[str]) -> st.SearchStrategy[list[tuple[str, int, bool, int]]]:
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 5), st.booleans(), st.integers(0, 9)))


class Scene:
    """A queue of numbers, and what priority each has that waits."""

    def __init__(self) -> None:
        self.priorities: dict[int, Priority] = {}
        self.queue = PriorityQueue(self.priorities.__getitem__)

    def act(self, kind: str, one: int, late: bool, left: int) -> None:
        match kind:
            case "add" if one not in self.priorities:
                self.priorities[one] = late, left
                self.queue.add(one)
            case "discard":
                self.priorities.pop(one, None)
                self.queue.discard(one)
            case "grow" if one in self.priorities:
                self.priorities[one] = max(self.priorities[one], (late, left))
            case "shrink" if one in self.priorities:
                self.priorities[one] = min(self.priorities[one], (late, left))

    def next(self) -> Priority | None:
        found = self.queue.next()
        return None if found is None else self.priorities[found]

    def least(self) -> Priority | None:
        return min(self.priorities.values(), default=None)


class Waiting:
    pass


@given(acts(KINDS))
def test_the_one_with_the_least_priority_is_next(acts: list[tuple[str, int, bool, int]]) -> None:
    scene = Scene()
    for act in acts:
        scene.act(*act)
        assert scene.next() == scene.least()


@given(acts([*KINDS, "shrink"]))
@example([("add", 0, False, 5), ("add", 1, False, 3), ("shrink", 0, False, 1)])
def test_one_whose_priority_has_shrunk_is_next_within_a_round(acts: list[tuple[str, int, bool, int]]) -> None:
    scene = Scene()
    for act in acts:
        scene.act(*act)
        scene.next()
    for _ in range(2 * len(acts) + GONE_MOST):
        scene.next()
    assert scene.next() == scene.least()


def test_those_that_wait_no_more_are_dropped() -> None:
    gone: weakref.WeakSet[Waiting] = weakref.WeakSet()
    queue: PriorityQueue[Waiting] = PriorityQueue(lambda one: (False, 0))
    first = Waiting()
    queue.add(first)
    for _ in range(10 * GONE_MOST):
        one = Waiting()
        gone.add(one)
        queue.add(one)
        queue.discard(one)
    del one
    gc.collect()
    assert len(gone) <= GONE_MOST + 2
    queue.discard(first)
    assert not gone
