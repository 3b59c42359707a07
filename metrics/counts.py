"""What one process counts, as plain numbers in memory: so that counting costs the hot path next to nothing.

`metrics.publisher` copies them to where a scrape finds them."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from metrics.metric import Metric
from metrics.samples import Sample

__all__ = ["Counts", "Histogram", "Histograms", "Observed"]

T = TypeVar("T")


class _Count:
    """A number that grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class _ByLabels(Generic[T]):
    """One of these for each combination of a metric's labels; of an open label, for each value that came."""

    __slots__ = ("_all", "_known", "_make", "_metric")

    def __init__(self, metric: Metric, make: Callable[[], T]) -> None:
        self._metric = metric
        self._make = make
        self._all = {labels: make() for labels in metric.combinations()}
        self._known: dict[tuple[object, ...], T] = {}

    def of(self, *labels: object) -> T:
        """Return the one of these labels, which count as their text; what is no value of a closed label is OTHER.

        How many values an open label has is for the caller to bound."""
        known = self._known.get(labels)
        if known is None:
            closed = self._metric.closed(*labels)
            known = self._all.get(closed)
            if known is None:
                known = self._all[closed] = self._make()
            if closed == tuple(map(str, labels)):  # of others there may be any number
                self._known[labels] = known
        return known


class Counts(_ByLabels[_Count]):
    """A counter."""

    __slots__ = ()

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric, _Count)

    def add(self, *labels: object, by: float = 1) -> None:
        """Count one more, or `by`."""
        self.of(*labels).value += by

    def read(self) -> Iterator[Sample]:
        """Yield the present values."""
        return (Sample(self._metric, labels, count.value) for labels, count in self._all.items())


class Histogram:
    """Counts values by buckets: up to each bound and beyond the one before, the last beyond all."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, as if it had been observed so many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times


class Observed(NamedTuple):
    """The histogram of a metric under these labels."""

    metric: Metric
    labels: tuple[str, ...]
    histogram: Histogram


class Histograms(_ByLabels[Histogram]):
    """A metric's histograms."""

    __slots__ = ()

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric, lambda: Histogram(metric.buckets))

    def read(self) -> Iterator[Observed]:
        """Yield them all."""
        return (Observed(self._metric, labels, one) for labels, one in self._all.items())
