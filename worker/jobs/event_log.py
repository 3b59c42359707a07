"""Logs what changed, by whom: a line for each entry that operators look for."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from registry.events.entry import Event, EventKind
from worker.jobs.recent import Recent
from worker.logs.log_lines import FIELDS

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
    """An observer of each entry, on a running loop."""

    def __init__(self) -> None:
        self._recent = Recent()
        self._logged: dict[str, int] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}

    def recall(self, event: Event) -> None:
        """Note an entry that another process has logged."""
        if _is_logged(event):
            self._is_first(event)

    def observe(self, event: Event) -> None:
        """Log an entry that operators look for, the first of those that are alike."""
        if _is_logged(event) and self._is_first(event):
            self._log(event)

    def close(self) -> None:
        """Log now how many lines were left out."""
        for text, end in [*self._ends.items()]:
            end.cancel()
            self._end_of_period(text)

    def _is_first(self, event: Event) -> bool:
        return self._recent.is_new(tuple(map(event.get, ALIKE)))

    def _log(self, event: Event) -> None:
        text = f"{event.kind} {event.cause}"[:TEXT_MOST]
        if text not in self._logged:
            self._logged[text] = 0
            loop = asyncio.get_running_loop()
            self._ends[text] = loop.call_later(EVERY_S, self._end_of_period, text)
        self._logged[text] += 1
        if self._logged[text] <= LINES:
            log.info("%s", text, extra={FIELDS: _fields(event)})

    def _end_of_period(self, text: str) -> None:
        del self._ends[text]
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
