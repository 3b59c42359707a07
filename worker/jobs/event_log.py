"""Logs what changed, by whom: a line for each entry that operators look for, in one of all schedulers."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from registry.events.entry import Event, EventKind
from worker.jobs.recent import Recent
from worker.logs.log_lines import FIELDS
from worker.watch.follower import Listener, ResetCause

__all__ = ["EventLog"]

LINES: Final = 50
EVERY_S: Final = 10.0
"""So many lines of a kind and cause in so many seconds; what is beyond is counted in one more."""
TEXT_MOST: Final = 200
"""Characters of a field: what a peer has sent may be long."""
OF_THE_STREAM: Final = frozenset({"v", "kind", "cause", "inc", "seq", "part"})
"""Fields that say nothing of the change."""
ALIKE: Final = ("op", "kind", "cause", "cluster", "broker", "id", "kv_ns", "key")
"""Fields in which entries are alike of which the first one is logged: a table of many topics is changed by many."""
NOT_LOGGED: Final = frozenset(
    {
        (EventKind.TOPICS_CHANGED, "register"),
        (EventKind.TOPICS_CHANGED, "acting"),
        (EventKind.MAPPINGS_CHANGED, "register"),
    }
)
"""What brokers themselves do to their topics."""

log = logging.getLogger(__name__)


class EventLog:
    """A follower's listener that hands on to another one; `logs_here` is asked whether this process logs."""

    def __init__(self, listener: Listener, logs_here: Callable[[], bool]) -> None:
        self._listener = listener
        self._logs_here = logs_here
        self._recent = Recent()
        self._logged: dict[str, int] = {}

    async def apply(self, group: Sequence[Event]) -> None:
        """Apply all entries of one script, then log them: those that raise come again."""
        await self._listener.apply(group)
        if self._logs_here():
            for event in group:
                if _is_logged(event) and self._recent.is_new(tuple(map(event.get, ALIKE))):
                    self._log(event)

    def emptied(self) -> None:
        """See `Listener`."""
        self._listener.emptied()

    async def reset(self, cause: ResetCause) -> None:
        """See `Listener`; what was missed is not logged."""
        await self._listener.reset(cause)

    def _log(self, event: Event) -> None:
        text = f"{event.kind} {event.cause}"[:TEXT_MOST]
        if text not in self._logged:
            self._logged[text] = 0
            asyncio.get_running_loop().call_later(EVERY_S, self._end_of_period, text)
        self._logged[text] += 1
        if self._logged[text] <= LINES:
            log.info("%s", text, extra={FIELDS: _fields(event)})

    def _end_of_period(self, text: str) -> None:
        more = self._logged.pop(text) - LINES
        if more > 0:
            log.info("%s: %d more within %g s, see `mqns events`", text, more, EVERY_S)


def _is_logged(event: Event) -> bool:
    """Whether it is neither a checkpoint nor a broker's change of its own topics."""
    return event.kind != EventKind.CHECKPOINT and (event.kind, event.cause) not in NOT_LOGGED


def _fields(event: Event) -> Mapping[str, str]:
    shown = {name: text for name, text in event.fields.items() if name not in OF_THE_STREAM}
    return {"event": str(event.id)} | {name: _shortened(text) for name, text in shown.items()}


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_MOST else f"{text[:TEXT_MOST]}…"
