"""The catalogue of metrics: the one place for their names, labels and meanings (docs/metrics.md shows it)."""

from typing import Final, Literal

import msgspec

PREFIX: Final = "rocketmq_namesrv_"
NS: Final = "ns"
"""The label of all metrics: the namespace, which scrapers leave alone under this name."""
OTHER: Final = "other"
"""The label of all that is not named."""
NAMED: Final = 50
"""So many clusters, consumers or namespaces of KV are named by labels."""


class Metric(msgspec.Struct, frozen=True):
    """`name` without PREFIX, with its unit; `labels` beside NS. `scope`: a fact of the store is the same at every HTTP
    worker."""

    name: str
    type: Literal["gauge"]
    labels: tuple[str, ...]
    scope: Literal["store"]
    about: str

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


PIPELINE_LAG: Final = Metric(
    "pipeline_lag_seconds",
    "gauge",
    ("pipeline",),
    "store",
    "How old what the pipeline has not yet: `landing:<name>`, the oldest entry that has not landed, 0 where all have; "
    "`reports`, the time up to which they go.",
)
PIPELINE_LAST_SUCCESS: Final = Metric(
    "pipeline_last_success_timestamp_seconds",
    "gauge",
    ("pipeline",),
    "store",
    "When a landing last said what it has, and when the reports were put in force; by the Redis clock.",
)
AVAILABILITY: Final = Metric(
    "availability_ratio",
    "gauge",
    ("cluster", "window"),
    "store",
    "Up / (up + down) in the last 1h, 24h, 7d, 30d, from the report of availability.",
)
ERROR_BUDGET_REMAINING: Final = Metric(
    "error_budget_remaining_ratio",
    "gauge",
    ("cluster",),
    "store",
    "What is left of the error budget, below 0 once it is overspent, from the report slo. Absent while less than a day "
    "of the window is known: the first restart would overspend it.",
)

CATALOGUE: Final = (PIPELINE_LAG, PIPELINE_LAST_SUCCESS, AVAILABILITY, ERROR_BUDGET_REMAINING)
