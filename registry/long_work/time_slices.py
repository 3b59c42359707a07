"""Long work inside a plan, in time slices, so that the event loop serves others between them."""

from time import perf_counter
from typing import Any, Final, TypeVar

from registry.plans import Pause, Plan
from rocketmq_remoting.cooperative import Cooperative

T = TypeVar("T")
TIME_SLICE_S: Final = 0.001
"""How long all long work of a process together may run before the loop goes on."""
SHORT_S: Final = 0.0002
"""Work that takes no longer has no pause, or a hundred small registrations of one moment would wait for one another."""
_PAUSE: Final = Pause(0)
_under_way: Final[set[Cooperative[Any]]] = set()


class _TimeSlice:
    """The present one; work that begins in it has what is left of it."""

    until = 0.0

    def over(self) -> bool:
        return perf_counter() >= self.until

    def begin(self) -> None:
        self.until = perf_counter() + TIME_SLICE_S / max(len(_under_way), 1)


_slice: Final = _TimeSlice()


def cooperatively(steps: Cooperative[T]) -> Plan[T]:
    """Return the result of `steps`, with a pause after each of their time slices. Raises what they raise."""
    if _slice.over():
        _slice.begin()
    short_until = perf_counter() + SHORT_S
    try:
        while True:
            next(steps)
            if _slice.over() and perf_counter() >= short_until:
                _under_way.add(steps)
                yield _PAUSE
                _slice.begin()
    except StopIteration as end:
        result: T = end.value
    finally:
        _under_way.discard(steps)
    if _slice.over() and perf_counter() >= short_until:
        yield _PAUSE
    return result
