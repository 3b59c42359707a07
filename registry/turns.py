"""Long work inside a plan: in turns with whatever else the event loop has to do."""

from time import perf_counter
from typing import Any, Final, TypeVar

from registry.plans import Pause, Plan
from remoting.steps import Steps

T = TypeVar("T")
TURN_S: Final = 0.001
"""How long all long work of a process together may hold the loop in one of its turns."""
SHORT_S: Final = 0.0002
"""Work that takes no longer has no pause, or a hundred small registrations of one moment would wait for one another."""
_PAUSE: Final = Pause(0)
_under_way: Final[set[Steps[Any]]] = set()


class _Turn:
    """The present one: what is begun in it has what is left of it."""

    until = 0.0

    def over(self) -> bool:
        return perf_counter() >= self.until

    def begin(self) -> None:
        self.until = perf_counter() + TURN_S / max(len(_under_way), 1)


_turn: Final = _Turn()


def in_turns(steps: Steps[T]) -> Plan[T]:
    """The result of `steps`, with a pause whenever they have had their turn. Raises what they raise."""
    if _turn.over():
        _turn.begin()
    short_until = perf_counter() + SHORT_S
    try:
        while True:
            next(steps)
            if _turn.over() and perf_counter() >= short_until:
                _under_way.add(steps)
                yield _PAUSE
                _turn.begin()
    except StopIteration as end:
        result: T = end.value
    finally:
        _under_way.discard(steps)
    if _turn.over() and perf_counter() >= short_until:
        yield _PAUSE
    return result
