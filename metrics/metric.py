"""What a metric is: its type, its labels and where its values come from."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from typing import Final, Literal

import msgspec

PREFIX: Final = "rocketmq_namesrv_"
NS: Final = "ns"
"""The label of all metrics: the namespace, which scrapers leave alone under this name."""
OTHER: Final = "other"
"""The label of all that is not named."""
NAMED: Final = 50
"""So many clusters, consumers or namespaces of KV are named by labels."""

LATENCY: Final = (5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper bounds of a histogram's buckets (s)."""
DELAY: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
SIZE: Final = tuple(float(1 << power) for power in (8, 10, 12, 14, 16, 18, 20, 22, 24))
"""Upper bounds of a histogram's buckets (bytes)."""


class Scope(StrEnum):
    """Where a metric's values come from; those of processes are summed, but for gauges with another `Merge`."""

    STORE = "store"
    REMOTING = "remoting"
    HTTP = "http"
    JOBS = "jobs"


class Merge(StrEnum):
    """How the values that living processes have of a gauge become one."""

    SUM = "livesum"
    LEAST = "livemin"
    LAST = "livemostrecent"


class Label(msgspec.Struct, frozen=True):
    """A label; `values` are all that it can have, none where these are names that peers choose."""

    name: str
    values: tuple[str, ...] = ()


class Metric(msgspec.Struct, frozen=True):
    """`name` without its prefix, with its unit; `labels` beside NS. `merge` is of gauges of processes, `buckets` are of
    histograms."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[Label, ...]
    scopes: tuple[Scope, ...]
    about: str
    merge: Merge = Merge.SUM
    buckets: tuple[float, ...] = ()
    prefix: str = PREFIX

    @property
    def full_name(self) -> str:
        return self.prefix + self.name

    @property
    def label_names(self) -> tuple[str, ...]:
        """Return the names of its labels, in the order of their values everywhere."""
        return tuple(label.name for label in self.labels)

    def combinations(self) -> Iterator[tuple[str, ...]]:
        """Yield the values that its labels can have together; none if one of them is open."""
        return product(*(label.values for label in self.labels))

    def closed(self, *values: object) -> tuple[str, ...]:
        """Return values of its labels as text: what is none of a closed label's is OTHER."""
        texts = zip(self.labels, map(str, values), strict=True)
        return tuple(text if not label.values or text in label.values else OTHER for label, text in texts)
