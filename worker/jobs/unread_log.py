"""Log lines about the trimming of the event stream: what it could not read and skipped, when that first shows, and the
loss of copies of operators' entries."""

import logging
from typing import Final

from registry.events.trim import Trimmed
from registry.keys import Keys
from worker.logs.rate_limited_log import RateLimitedLog

LONGEST: Final = 200
"""Characters of a name or reason in a line: programs outside may write any text."""

log = logging.getLogger(__name__)
lost = RateLimitedLog(log, every_s=60.0)


class UnreadLog:
    """Remembers which reports the last run could not read, so that each is logged once; an entry is read only once."""

    def __init__(self) -> None:
        self._consumers: dict[str, str] = {}

    def report(self, keys: Keys, trimmed: Trimmed) -> None:
        """Log what is new in this run."""
        if trimmed.unread_entries:
            log.warning(
                "the event stream %s has entries without a number (seq), %s and perhaps more: they are skipped, and "
                "trimmed with the others; find out what wrote them, only the name server may",
                keys.events,
                ", ".join(trimmed.unread_entries),
            )
        if trimmed.copies_trimmed:
            lost.warning(
                "the oldest %d entries of %s are gone, for want of room, so `mqns audit` begins later; see which actor "
                "changes so much, and raise eventsMaxBytes if it is right to",
                trimmed.copies_trimmed,
                keys.audit,
            )
        news = trimmed.unread_consumers.items() - self._consumers.items()
        for name, reason in sorted(news):
            log.warning(
                "the report of consumer %r in %s cannot be read: %s; entries are trimmed without regard to it until "
                "it is corrected (docs/events.md) or removed with HDEL",
                name[:LONGEST],
                keys.events_consumers,
                reason[:LONGEST],
            )
        self._consumers = trimmed.unread_consumers
