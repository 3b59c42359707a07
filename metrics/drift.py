"""Comparisons of name servers, as they were reported last."""

from collections.abc import Iterator

from metrics import catalogue as metrics
from metrics.samples import Sample
from registry.drift import KINDS, SECOND_MS, Comparison, comparisons
from registry.keys import Keys
from registry.plans import Plan

__all__ = ["read"]


def read(keys: Keys) -> Plan[list[Sample]]:
    """Return what comparisons found that are not stale, and how old the result of each is."""
    found = yield from comparisons(keys)
    return [sample for name, one in found.by_name.items() for sample in _samples(name, one, found.now_ms)]


def _samples(name: str, found: Comparison, now_ms: int) -> Iterator[Sample]:
    report = found.report
    yield Sample(metrics.DRIFT_AGE, (name,), max(now_ms - found.at_ms, 0) / SECOND_MS)
    yield Sample(metrics.DRIFT_VALID, (name,), report.valid_for_s)
    if found.is_stale(now_ms):
        return
    yield Sample(metrics.DRIFT_UNREACHABLE, (name,), len(report.unreachable))
    for kind in KINDS if not report.unreachable else ():
        yield Sample(metrics.DRIFT_DIFFERENCES, (name, kind), report.counts.get(kind, 0))
