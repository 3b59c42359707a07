"""Registrations and heartbeats of one process by what came of them, and what its limits refused."""

from collections.abc import Iterator
from typing import Final

from metrics import catalogue as metrics
from metrics.counts import Counts, Histograms, Observed
from metrics.samples import Sample

__all__ = ["REJECTED", "RegistrationCounts"]

REJECTED: Final = "rejected"
"""What came of a registration that was answered with an error."""


class RegistrationCounts:
    """Ever growing."""

    def __init__(self) -> None:
        self.results = Counts(metrics.REGISTRATIONS)
        self.durations = Histograms(metrics.REGISTRATION_DURATION)
        self.heartbeats = Counts(metrics.HEARTBEATS)
        self.limits = Counts(metrics.LIMIT_REFUSALS)

    def limited(self, option: str) -> None:
        """Count a refusal, if a limit was the cause: `option` is its key."""
        if option in metrics.LIMIT.values:
            self.limits.add(option)

    def read(self) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics."""
        for counts in (self.results, self.heartbeats, self.limits):
            yield from counts.read()
        yield from self.durations.read()
