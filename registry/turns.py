"""Long work inside a plan: in turns with whatever else the event loop has to do."""

from time import perf_counter
from typing import Any, Final, TypeVar

from registry.plans import Pause, Plan
from remoting.steps import Steps

T = TypeVar("T")
TURN_S: Final = 0.002
"""How long all long work of a process together may hold the loop in one of its turns."""
_PAUSE: Final = Pause(0)
_under_way: Final[set[Steps[Any]]] = set()


def in_turns(steps: Steps[T]) -> Plan[T]:
    """The result of `steps`, with a pause whenever they have had their turn. Raises what they raise."""
    _under_way.add(steps)
    try:
        until = perf_counter() + TURN_S / len(_under_way)
        while True:
            next(steps)
            if perf_counter() >= until:
                yield _PAUSE
                until = perf_counter() + TURN_S / len(_under_way)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        _under_way.discard(steps)
