"""Counts events as metrics: in one of all schedulers, so that each is counted once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from metrics import catalogue as metrics
from metrics.counts import Counts, Histogram, Histograms, Observed
from metrics.metric import OTHER
from metrics.samples import Sample
from registry.events.entry import Event, EventKind
from worker.jobs.recent import Recent
from worker.watch.follower import Listener, ResetCause

__all__ = ["EventCounts"]

SEEN_BY: Final = {"expired": "last_seen_ms", "lost": "closed_ms", "closed": "closed_ms"}
"""Since when a member that was removed was dead, by cause."""


class EventCounts:
    """A follower's listener that hands on to another one; `counts_here` is asked whether this process counts."""

    def __init__(self, listener: Listener, counts_here: Callable[[], bool]) -> None:
        self._listener = listener
        self._counts_here = counts_here
        self._changes = Counts(metrics.ROUTE_CHANGES)
        self._removals = Counts(metrics.UNREGISTRATIONS)
        self._conflicts = Counts(metrics.IDENTITY_CONFLICTS)
        self._admin_writes = Counts(metrics.ADMIN_WRITES)
        self._recent = Recent()
        self._detection = Histograms(metrics.DETECTION_LATENCY)
        self._record_delay = Histogram(metrics.EXPIRY_RECORD_DELAY.buckets)
        for kind, causes in metrics.CAUSES.items():
            for cause in (*causes, OTHER):
                self._changes.of(kind, cause)

    async def apply(self, group: Sequence[Event]) -> None:
        """Apply all entries of one script, then count them: those that raise come again."""
        await self._listener.apply(group)
        if self._counts_here():
            for event in group:
                self._count(event)

    def emptied(self) -> None:
        """See `Listener`."""
        self._listener.emptied()

    async def reset(self, cause: ResetCause) -> None:
        """See `Listener`; what was missed is not counted."""
        await self._listener.reset(cause)

    def read(self) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics."""
        for counts in (self._changes, self._removals, self._conflicts, self._admin_writes):
            yield from counts.read()
        yield from self._detection.read()
        yield Observed(metrics.EXPIRY_RECORD_DELAY, (), self._record_delay)

    def _count(self, event: Event) -> None:
        kind, cause = event.kind, event.cause
        if kind == EventKind.CHECKPOINT:
            return
        self._changes.add(kind, cause if cause in metrics.CAUSES.get(kind, ()) else OTHER)
        self._count_admin_write(event)
        if kind == EventKind.BROKER_REMOVED:
            self._count_removal(event)
        elif kind == EventKind.CONFLICT_SEEN:
            self._conflicts.add(cause, by=_number(event, "count") or 1)
        elif kind == EventKind.BROKER_REGISTERED and cause == "takeover":
            self._conflicts.add(cause)

    def _count_admin_write(self, event: Event) -> None:
        """Count an act once, in however many entries it is."""
        op = metrics.ADMIN_OPS.get((event.kind, event.cause))
        if op and self._recent.is_new((event.get("op"), op)):
            self._admin_writes.add(op, event.get("actor").partition(":")[0])

    def _count_removal(self, event: Event) -> None:
        self._removals.add(event.cause)
        gone_ms = _number(event, "effective_ms") or event.id.ms
        since_ms = _number(event, SEEN_BY.get(event.cause, ""))
        if since_ms:
            self._detection.of(event.cause).observe(max(gone_ms - since_ms, 0) / 1000)
        if event.cause == "expired":
            self._record_delay.observe(max(event.id.ms - gone_ms, 0) / 1000)


def _number(event: Event, field: str) -> int:
    """Return a number of an entry, 0 where there is none: other programs can write entries, too."""
    text = event.get(field)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
