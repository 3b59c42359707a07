"""Publishes what a process counts: into its own files in the folder of the container, where any scrape reads them.

The files are those of the client library in its mode for several processes, named by role and process id."""

import logging
import os
import time
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final

from prometheus_client.utils import floatToGoString
from prometheus_client.values import MultiProcessValue

from metrics.catalogue import CATALOGUE, WORKERS
from metrics.counts import Histogram, Observed
from metrics.files import VARIABLE, discard, folder, identity, inodes, reserve
from metrics.metric import NS, Merge, Metric, Scope
from metrics.samples import Sample
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["PUBLISH_EVERY_S", "Publisher", "Read"]

PUBLISH_EVERY_S: Final = 1.0
LOG_EVERY_S: Final = 60.0
INFINITE: Final = "+Inf"

log = RateLimitedLog(logging.getLogger(__name__), LOG_EVERY_S)


Read = Callable[[], Iterable[Sample | Observed]]
"""Returns present values; of a counter all that this process ever counted."""


class _Number:
    """A number in a file, which goes on from what a dead process of the same name has left of a counter."""

    __slots__ = ("_before", "_last", "_timed", "_value")

    def __init__(self, value: Any, metric: Metric) -> None:
        self._value = value
        self._timed = metric.merge is Merge.LAST
        self._before = 0.0 if metric.type == "gauge" else value.get()
        self._last: float | None = None

    def show(self, value: float) -> None:
        if value != self._last or self._timed:
            self._last = value
            self._value.set(self._before + value, time.time() if self._timed else None)


class _Buckets:
    """A histogram: a number for each bucket, which the reader adds up, and the sum."""

    __slots__ = ("_counts", "_last", "_sum")

    def __init__(self, counts: list[_Number], sum: _Number) -> None:
        self._counts = counts
        self._sum = sum
        self._last: list[int] = []

    def show(self, histogram: Histogram) -> None:
        if histogram.counts == self._last:  # as most are: a look at each number took long
            return
        self._last = histogram.counts.copy()
        for number, count in zip(self._counts, histogram.counts, strict=True):
            number.show(count)
        self._sum.show(histogram.sum)


class Publisher:
    """Publishes what `read` returns, of a process of this role. What it can count is there from the start, with 0; a
    gauge of which the least of all processes counts is not: the 0 of one that starts would be it.

    Made in the process itself: not before a fork. Without a folder (`metrics.files`) it publishes nothing."""

    def __init__(self, ns: str, scope: Scope, role: str, read: Read) -> None:
        self._read = read
        self._ns = ns
        self._role = role
        self._scope = scope
        self._value_of: Any = MultiProcessValue(lambda: identity(role, os.getpid()))
        self._due_at = 0.0
        self._shown: dict[tuple[str, tuple[str, ...]], _Number | _Buckets] = {}
        self._inodes: tuple[int, ...] = ()  # of the files once all is in them

    def publish_if_due(self) -> None:
        """Publish, if the last time is PUBLISH_EVERY_S ago."""
        if monotonic() >= self._due_at:
            self.publish()

    def publish(self) -> None:
        """Publish what has changed; all of it again if the files are gone. What keeps it from that is logged, and is no
        reason to serve nothing."""
        self._due_at = monotonic() + PUBLISH_EVERY_S
        if folder() is None:
            return
        try:
            if not self._inodes or self._are_gone():
                self._begin_all()
            self._show()
        except (OSError, ValueError) as error:
            log.warning(
                "metrics are not published: %s; they are again by themselves once there is a folder %s and room in it",
                error,
                folder(),
            )

    def _are_gone(self) -> bool:
        """Return whether files of this process were deleted; what is left of them is discarded then."""
        name = identity(self._role, os.getpid())
        if inodes(name) == self._inodes:
            return False
        log.warning(
            "files of metrics of this process were deleted from %s, and are written again; keep what cleans up from "
            "that folder, or name another one (%s)",
            folder(),
            VARIABLE,
        )
        discard(name)  # a counter goes on from what its file has
        self._inodes = ()
        return True

    def _begin_all(self) -> None:
        name = identity(self._role, os.getpid())
        self._value_of.close_all_files()  # of an earlier attempt
        self._shown.clear()
        reserve(name)
        for metric in CATALOGUE:
            if self._scope in metric.scopes and metric is not WORKERS and metric.merge is not Merge.LEAST:
                for labels in metric.combinations():
                    self._shown[metric.name, labels] = self._begin(metric, labels)
        self._shown[WORKERS.name, (self._role,)] = alive = self._number(WORKERS, "", (self._role,))
        alive.show(1)
        self._inodes = inodes(name)

    def _show(self) -> None:
        for read in self._read():
            metric, labels, value = read
            shown = self._shown.get((metric.name, labels))
            if shown is None:
                shown = self._shown[metric.name, labels] = self._begin(metric, labels)
            shown.show(value)  # type: ignore[arg-type]  # a histogram for those of histograms

    def _begin(self, metric: Metric, labels: tuple[str, ...]) -> _Number | _Buckets:
        if metric.type != "histogram":
            return self._number(metric, "", labels)
        bounds = (*map(floatToGoString, metric.buckets), INFINITE)
        counts = [self._number(metric, "_bucket", labels, bound) for bound in bounds]
        return _Buckets(counts, self._number(metric, "_sum", labels))

    def _number(self, metric: Metric, suffix: str, labels: tuple[str, ...], *bound: str) -> _Number:
        """Return a number under the name that a scrape shows."""
        value = self._value_of(
            metric.type,
            metric.full_name.removesuffix("_total"),  # of the family; the library adds it again
            metric.full_name + suffix,
            (NS, *metric.label_names, *("le",) * len(bound)),
            (self._ns, *labels, *bound),
            "",  # what it is about is added where it is read
            metric.merge.value,
        )
        return _Number(value, metric)
