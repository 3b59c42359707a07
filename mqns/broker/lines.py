"""Events of an agent as lines, which no name server can make long or many."""

import heapq
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import msgspec

from mqns.broker.events import BrokerEvent, Failed, Registered, log

TEXT_MAX: Final = 200
"""Characters of a text."""
NAMES_MAX: Final = 50
"""Names of a list."""
LINES_MAX: Final = 20
"""Lines of one kind of event in PERIOD_S."""
PERIOD_S: Final = 10.0
LONG: Final = 1 << 63


class _Period:
    def __init__(self, end: float) -> None:
        self.end = end
        self.lines = 1
        self.left_out = 0


class LineLimit:
    """Which events get a line: LINES_MAX of each kind, name server and request in PERIOD_S."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._periods: dict[tuple[object, ...], _Period] = {}

    def admit(self, event: BrokerEvent) -> int | None:
        """Return how many like it were left out before; None if this one is to be left out, too."""
        kind = (type(event), getattr(event, "address", ""), getattr(event, "code", 0))
        now, period = self._clock(), self._periods.get(kind)
        if period is None or now >= period.end:
            self._periods[kind] = _Period(now + PERIOD_S)
            return period.left_out if period else 0
        if period.lines < LINES_MAX:
            period.lines += 1
            return 0
        period.left_out += 1
        return None


class EventLog:
    """Logs events: failures as warnings, repeated registrations as debug."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._limit = LineLimit(clock)

    def __call__(self, event: BrokerEvent) -> None:
        level = logging.DEBUG if isinstance(event, Registered) else logging.INFO
        if isinstance(event, Failed):
            level = logging.WARNING
        if not log.isEnabledFor(level) or (left_out := self._limit.admit(event)) is None:
            return
        more = f" (and {left_out} more like it)" if left_out else ""
        if isinstance(event, Failed):
            error = " ".join(str(members(event)["error"]).splitlines())
            message = "%s: %s failed, retried while the agent runs: %s%s"
            log.log(level, message, event.address, event.code.name, error, more)
        else:
            log.log(level, "%s%s", line(event), more)


log_event: Final = EventLog()


def members(event: BrokerEvent, left_out: int = 0) -> dict[str, Any]:
    """Return the fields of an event in RocketMQ's spelling, cut, and how many like it were left out."""
    if isinstance(event, Failed):
        fields: dict[str, Any] = {
            "address": event.address,
            "code": event.code.name,
            "error": str(event.error),
        }
    else:
        fields = {_camel(name): value for name, value in msgspec.structs.asdict(event).items()}
    if left_out:
        fields["leftOut"] = left_out
    return {name: _cut(value) for name, value in fields.items()}


def line(event: BrokerEvent, left_out: int = 0) -> str:
    """Return the same as a line."""
    fields = members(event, left_out).items()
    return " ".join(
        [type(event).__name__, *(f"{name}={value}" for name, value in fields if value is not None)]
    )


def _cut(value: Any) -> Any:
    if isinstance(value, frozenset):
        return [*_first(heapq.nsmallest(NAMES_MAX, value), len(value))]
    if isinstance(value, tuple):
        return tuple(_first(value[:NAMES_MAX], len(value)))
    if isinstance(value, int) and not -LONG <= value < LONG:
        value = hex(value)
    return f"{value[:TEXT_MAX]}…" if isinstance(value, str) and len(value) > TEXT_MAX else value


def _first(names: Any, of: int) -> list[str]:
    more = [f"… and {of - NAMES_MAX} more"] if of > NAMES_MAX else []
    return [*map(_cut, names), *more]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
