"""Whose turn it is, of those that wait."""

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from worker.transport.turns import GONE_MOST, Turn, Turns

acts = st.tuples(
    st.sampled_from(["add", "discard", "grow", "next"]), st.integers(0, 5), st.booleans(), st.integers(0, 9)
)


class Waiting:
    pass


@given(st.lists(acts))
def test_the_one_with_the_least_turn_is_next(acts: list[tuple[str, int, bool, int]]) -> None:
    turn: dict[int, Turn] = {}
    turns = Turns(turn.__getitem__)
    for act, one, late, left in acts:
        match act:
            case "add" if one not in turn:
                turn[one] = late, left
                turns.add(one)
            case "discard":
                turn.pop(one, None)
                turns.discard(one)
            case "grow" if one in turn:
                turn[one] = max(turn[one], (late, left))
        found = turns.next()
        assert (None if found is None else turn[found]) == min(turn.values(), default=None)


def test_those_that_wait_no_more_are_dropped() -> None:
    gone: weakref.WeakSet[Waiting] = weakref.WeakSet()
    turns: Turns[Waiting] = Turns(lambda one: (False, 0))
    first = Waiting()
    turns.add(first)
    for _ in range(10 * GONE_MOST):
        one = Waiting()
        gone.add(one)
        turns.add(one)
        turns.discard(one)
    del one
    gc.collect()
    assert len(gone) <= GONE_MOST + 2
    turns.discard(first)
    assert not gone
