"""Values of metrics on their way to the text that Prometheus reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily

from metrics.metric import NAMED, NS, OTHER, Metric
from worker.logs.log_lines import one_line

__all__ = ["Sample", "families", "named", "shown"]


class Sample(NamedTuple):
    """A value of a counter or gauge, with those of its labels in the catalogue's order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


def families(samples: Iterable[Sample], ns: str) -> Iterator[GaugeMetricFamily]:
    """Yield gauges as families of the client library, each metric once, and each of its series once: Prometheus takes
    nothing of a scrape with two that are alike, or with text that is no UTF-8, and peers choose names (`shown`)."""
    by_metric = dict[str, GaugeMetricFamily]()
    seen = set[tuple[str, ...]]()
    for metric, labels, value in samples:
        texts = tuple(map(shown, labels))
        if (metric.name, *texts) in seen:
            continue
        seen.add((metric.name, *texts))
        family = by_metric.get(metric.name)
        if family is None:
            names = (NS, *metric.label_names)
            family = by_metric[metric.name] = GaugeMetricFamily(metric.full_name, metric.about, labels=names)
        family.add_metric((ns, *texts), value)
    yield from by_metric.values()


def shown(name: str) -> str:
    """Return a name for a label, with escapes for what acts on a terminal or is no UTF-8, as log lines have them.

    Its backslashes are doubled, so that no two names are shown alike."""
    return one_line(name.replace("\\", "\\\\"))


def named(values: Mapping[str, float], joined: Callable[[Iterable[float]], float]) -> dict[str, float]:
    """Return the values of the first NAMED names, and what all others are `joined` to, under OTHER."""
    names = sorted(values)
    own = {name: values[name] for name in names[:NAMED] if name != OTHER}
    rest = [values[name] for name in names if name not in own]
    return own | {OTHER: joined(rest)} if rest else own
