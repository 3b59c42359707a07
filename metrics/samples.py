"""Values of metrics on their way to the text that Prometheus reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from prometheus_client.utils import floatToGoString

from metrics.metric import NAMED, NS, OTHER, Metric
from worker.logs.log_lines import one_line

__all__ = ["Sample", "named", "shown", "text"]


class Sample(NamedTuple):
    """A value of a counter or gauge, with those of its labels in the catalogue's order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


def text(samples: Iterable[Sample], ns: str) -> str:
    """Return gauges in Prometheus's text format, each metric once, and each of its series once.

    Prometheus takes nothing of a scrape with two that are alike, or with text that is no UTF-8, and peers choose names
    (`shown`). The client library checks the name of each label of each series, which was half of a scrape's time."""
    escaped = cache(_escaped)
    by_metric = dict[str, list[Sample]]()
    for sample in samples:
        by_metric.setdefault(sample.metric.name, []).append(sample)
    return "".join(_family(of_metric, ns, escaped) for of_metric in by_metric.values())


def _family(samples: Sequence[Sample], ns: str, escaped: Callable[[str], str]) -> str:
    """Return the lines of one metric."""
    metric = samples[0].metric
    name = metric.full_name
    labels = ",".join(f'{label}="%s"' for label in (NS, *metric.label_names))
    form = f"{name}{{{labels}}}"
    series = {form % (ns, *map(escaped, values)): value for _, values, value in samples}
    lines = [f"{one} {floatToGoString(value)}\n" for one, value in series.items()]
    return "".join((f"# HELP {name} {metric.about}\n# TYPE {name} gauge\n", *lines))


def _escaped(label: str) -> str:
    return shown(label).replace("\\", "\\\\").replace('"', '\\"')


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
