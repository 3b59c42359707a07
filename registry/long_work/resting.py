"""Long work inside a plan at a fraction of a core, so that other work of the process goes on beside it."""

from time import perf_counter
from typing import TypeVar

from registry.plans import Pause, Plan

T = TypeVar("T")


def rested(plan: Plan[T], rest: float) -> Plan[T]:
    """Return what a plan does, with a pause behind each reply: `rest` times as long as the work before it took."""
    reply: object = None
    while True:
        began = perf_counter()
        try:
            request = plan.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result
        reply = yield request
        yield Pause(rest * (perf_counter() - began))
