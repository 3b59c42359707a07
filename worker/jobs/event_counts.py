"""Counts events as metrics."""

from collections.abc import Iterator
from typing import Final

from metrics import catalogue as metrics
from metrics.counts import Counts, Histogram, Histograms, Observed
from metrics.metric import OTHER
from metrics.samples import Sample
from registry.events.entry import Event, EventKind
from worker.jobs.recent import Recent

__all__ = ["EventCounts"]

SEEN_BY: Final = {"expired": "last_seen_ms", "lost": "closed_ms", "closed": "closed_ms"}
"""Since when a member that was removed was dead, by cause."""


class EventCounts:
    """An observer of each entry."""

    def __init__(self) -> None:
        self._changes = Counts(metrics.ROUTE_CHANGES)
        self._removals = Counts(metrics.UNREGISTRATIONS)
        self._conflicts = Counts(metrics.IDENTITY_CONFLICTS)
        self._stale_unregisters = Counts(metrics.STALE_UNREGISTERS)
        self._admin_writes = Counts(metrics.ADMIN_WRITES)
        self._recent = Recent()
        self._detection = Histograms(metrics.DETECTION_LATENCY)
        self._record_delay = Histogram(metrics.EXPIRY_RECORD_DELAY.buckets)
        for kind, causes in metrics.CAUSES.items():
            for cause in (*causes, OTHER):
                self._changes.of(kind, cause)

    def read(self) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics."""
        counters = self._changes, self._removals, self._conflicts, self._stale_unregisters, self._admin_writes
        for counts in counters:
            yield from counts.read()
        yield from self._detection.read()
        yield Observed(metrics.EXPIRY_RECORD_DELAY, (), self._record_delay)

    def recall(self, event: Event) -> None:
        """Note an act that another process has counted."""
        self._new_op(event)

    def observe(self, event: Event) -> None:
        """Count an entry."""
        kind, cause = event.kind, event.cause
        if kind == EventKind.CHECKPOINT:
            return
        self._changes.add(kind, cause if cause in metrics.CAUSES.get(kind, ()) else OTHER)
        self._count_admin_write(event)
        if kind == EventKind.BROKER_REMOVED:
            self._count_removal(event)
        elif kind == EventKind.CONFLICT_SEEN:
            self._conflicts.add(cause, by=_number(event, "count") or 1)
            if cause == "stale_unregister":
                self._stale_unregisters.add()
        elif kind == EventKind.BROKER_REGISTERED and cause == "takeover":
            self._conflicts.add(cause)

    def _count_admin_write(self, event: Event) -> None:
        """Count an act once, in however many entries it is."""
        if op := self._new_op(event):
            self._admin_writes.add(op, event.get("actor").partition(":")[0])

    def _new_op(self, event: Event) -> str | None:
        """Return an operator's act, None for another entry of the same one."""
        op = metrics.ADMIN_OPS.get((event.kind, event.cause))
        return op if op and self._recent.is_new((event.get("op"), op)) else None

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
