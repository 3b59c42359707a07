"""Values of metrics on their way to the text that Prometheus reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily

from metrics.catalogue import NAMED, NS, OTHER, Metric

__all__ = ["Sample", "families", "named"]


class Sample(NamedTuple):
    """A value of a counter or gauge, with those of its labels in the catalogue's order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


def families(samples: Iterable[Sample], ns: str) -> Iterator[GaugeMetricFamily]:
    """Yield gauges as families of the client library, each metric once."""
    by_metric = dict[Metric, GaugeMetricFamily]()
    for metric, labels, value in samples:
        family = by_metric.setdefault(
            metric, GaugeMetricFamily(metric.full_name, metric.about, labels=(NS, *metric.label_names))
        )
        family.add_metric((ns, *labels), value)
    yield from by_metric.values()


def named(values: Mapping[str, float], joined: Callable[[Iterable[float]], float]) -> dict[str, float]:
    """Return the values of the first NAMED names, and what all others are `joined` to, under OTHER."""
    names = sorted(values)
    own = {name: values[name] for name in names[:NAMED] if name != OTHER}
    rest = [values[name] for name in names if name not in own]
    return own | {OTHER: joined(rest)} if rest else own
