"""Sorting many names inside a plan, in time slices."""

from collections.abc import Iterable
from typing import Final

from registry.long_work.time_slices import cooperatively
from registry.plans import Plan
from rocketmq_remoting.cooperative import Cooperative

AT_ONCE: Final = 1000
"""Names sorted in one step, half a millisecond."""


def in_order(names: Iterable[str]) -> Plan[tuple[str, ...]]:
    """Return the names sorted."""
    return (yield from cooperatively(_sorted(list(names))))


def _sorted(names: list[str]) -> Cooperative[tuple[str, ...]]:
    """Sort parts; merging them at the end takes a fifth of the time that sorting all would."""
    ordered: list[str] = []
    for at in range(0, len(names), AT_ONCE):
        ordered += sorted(names[at : at + AT_ONCE])
        yield
    ordered.sort()
    return tuple(ordered)
