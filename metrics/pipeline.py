"""How far the pipeline has come, and what its last reports say of clusters."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from metrics.catalogue import (
    AVAILABILITY,
    ERROR_BUDGET_REMAINING,
    FLAPPING_BROKERS,
    FOLD_MISMATCHES,
    PIPELINE_LAG,
    PIPELINE_LAST_SUCCESS,
)
from metrics.metric import NAMED
from metrics.samples import Sample, named
from registry.clock import now_ms
from registry.events.consumers import read_reports
from registry.events.entry import EventId
from registry.keys import Keys
from registry.plans import Batch, Plan, call
from registry.reports import IDENTITY, Meta, served
from rocketmq_remoting.typed import decoded

WINDOWS: Final = ("1h", "24h", "7d", "30d")
REPORTS: Final = "reports"
CONSUMER: Final = "pipeline:"
"""What the names of landings begin with in `events:consumers`."""
CLUSTER: Final = "cluster:"
KNOWN_MS: Final = 24 * 3_600_000
"""A budget is a metric once so much of its window is known: until then one restart overspends it."""


class Budget(msgspec.Struct, frozen=True):
    """What the report slo says of a cluster; `budget_ms` is (1 - slo) of the time that is known."""

    slo: float
    budget_ms: float | None
    remaining: float | None

    @property
    def counts(self) -> bool:
        return self.budget_ms is not None and round(self.budget_ms) >= round((1 - self.slo) * KNOWN_MS)


class Availability(msgspec.Struct, frozen=True):
    """What the report availability says of a cluster."""

    availability: float | None


class Slot(msgspec.Struct, frozen=True):
    """What the report flap says of a slot."""

    flapping: bool | None


class Figures(msgspec.Struct, frozen=True):
    """Figures of clusters, of the run in force: availability by window, what is left of error budgets, broker names
    that are flapping; and how many rows of the newest checkpoint differ from its tables, None if none was compared."""

    identity: Sequence[str | None]
    published_ms: int | None
    as_of_ms: int
    availability: Mapping[str, Mapping[str, float]]
    remaining: Mapping[str, float]
    flapping: Mapping[str, int]
    mismatches: int | None


class Landing(msgspec.Struct, frozen=True):
    """A landing: when it reported last, and when the first entry was written that it has not; None if it has all."""

    reported_ms: int
    next_ms: int | None


Row = TypeVar("Row", Budget, Availability)


def read_figures(keys: Keys, before: Figures | None) -> Plan[Figures | None]:
    """Return what the run in force says, None without one; `before` itself if it is of that run."""
    identity = yield call("HMGET", keys.report("meta"), *IDENTITY)
    if before is not None and identity == before.identity:
        return before
    names = ("slo", "flap:values", *(f"availability:{window}" for window in WINDOWS))
    last = yield from served(keys, *(call("HGETALL", keys.report(name)) for name in names))
    if last is None:
        return None
    budgets, slots, *windows = last.replies
    return Figures(
        identity,
        last.meta.published_ms,
        last.meta.as_of_ms,
        {
            window: {
                cluster: row.availability
                for cluster, row in _clusters(rows, Availability)
                if row.availability is not None
            }
            for window, rows in zip(WINDOWS, windows, strict=True)
        },
        {
            cluster: row.remaining
            for cluster, row in _clusters(budgets, Budget)
            if row.counts and row.remaining is not None
        },
        Counter(cluster for cluster, _ in {_broker_of(unit) for unit, text in slots.items() if _flaps(text)}),
        _mismatches(last.meta),
    )


def read_landings(keys: Keys) -> Plan[dict[str, Landing]]:
    """Return the first NAMED landings by their names; those whose report cannot be read are left out."""
    consumers, _ = yield from read_reports(keys)
    names = sorted(name for name in consumers if name.startswith(CONSUMER))[:NAMED]
    if not names:
        return {}
    after = (f"({consumers[name].position}" for name in names)
    replies = yield Batch(tuple(call("XRANGE", keys.events, start, "+", "COUNT", 1) for start in after))
    return {
        name.removeprefix(CONSUMER): Landing(
            consumers[name].at_ms, EventId.parse(entries[0][0]).ms if entries else None
        )
        for name, entries in zip(names, replies, strict=True)
    }


class PipelineFacts:
    """What the pipeline has done; the figures of its last run are read once."""

    def __init__(self) -> None:
        self._figures: Figures | None = None

    def read(self, keys: Keys) -> Plan[list[Sample]]:
        """Return it as it is now."""
        self._figures = yield from read_figures(keys, self._figures)
        landings = yield from read_landings(keys)
        return [*_samples((yield from now_ms()), landings, self._figures)]


def _samples(at_ms: int, landings: Mapping[str, Landing], figures: Figures | None) -> Iterator[Sample]:
    """Yield what both say at this time of the Redis clock."""
    for name, landing in landings.items():
        label = f"landing:{name}"
        yield Sample(PIPELINE_LAG, (label,), _seconds(at_ms - (landing.next_ms or at_ms)))
        yield Sample(PIPELINE_LAST_SUCCESS, (label,), _seconds(landing.reported_ms))
    if figures is None:
        return
    yield Sample(PIPELINE_LAG, (REPORTS,), _seconds(at_ms - figures.as_of_ms))
    if figures.published_ms is not None:
        yield Sample(PIPELINE_LAST_SUCCESS, (REPORTS,), _seconds(figures.published_ms))
    for window, ratios in figures.availability.items():
        for cluster, ratio in named(ratios, min).items():
            yield Sample(AVAILABILITY, (cluster, window), ratio)
    for cluster, remaining in named(figures.remaining, min).items():
        yield Sample(ERROR_BUDGET_REMAINING, (cluster,), remaining)
    for cluster, flapping in named(figures.flapping, sum).items():
        yield Sample(FLAPPING_BROKERS, (cluster,), flapping)
    if figures.mismatches is not None:
        yield Sample(FOLD_MISMATCHES, (), figures.mismatches)


def _mismatches(meta: Meta) -> int | None:
    """Return by how many rows the newest checkpoint disagrees, which proves a defect only if history was whole."""
    if meta.members_differing is None or meta.pairs_differing is None:
        return None
    return meta.members_differing + meta.pairs_differing if meta.proves else 0


def _clusters(rows: Mapping[str, str], kind: type[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of clusters, by their names."""
    for unit, text in rows.items():
        if unit.startswith(CLUSTER):
            yield unit.removeprefix(CLUSTER), decoded(text, kind)


def _broker_of(slot: str) -> tuple[str, str]:
    """Return cluster and broker of `slot:<cluster>:<broker>:<id>`; a colon within a name counts as its end, as in
    reports."""
    cluster, _, rest = slot.removeprefix("slot:").partition(":")
    return cluster, rest.rpartition(":")[0]


def _flaps(text: str) -> bool:
    return bool(decoded(text, Slot).flapping)


def _seconds(ms: int) -> float:
    return max(ms, 0) / 1000
