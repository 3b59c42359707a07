"""Topics and queues of clusters, as a scheduler counted them last."""

from typing import Final

from metrics import catalogue as metrics
from metrics.metric import Metric
from metrics.samples import Sample, named
from registry import topic_counts
from registry.keys import Keys
from registry.plans import Plan

__all__ = ["read"]

COUNTS: Final[dict[str, tuple[Metric, tuple[str, ...]]]] = {
    "topics": (metrics.TOPICS, ()),
    "read_queues": (metrics.QUEUES, ("read",)),
    "write_queues": (metrics.QUEUES, ("write",)),
    "without_writable_master": (metrics.TOPICS_WITHOUT_WRITABLE_MASTER, ()),
}
"""The metric of each count of a cluster, and its labels behind the cluster's."""


def read(keys: Keys) -> Plan[list[Sample]]:
    """Return the counts of each cluster; none where nothing was counted for ten minutes."""
    counts = yield from topic_counts.read(keys)
    if counts is None:
        return []
    return [
        Sample(metric, (cluster, *labels), value)
        for count, (metric, labels) in COUNTS.items()
        for cluster, value in named(
            {cluster: getattr(of_cluster, count) for cluster, of_cluster in counts.clusters.items()}, sum
        ).items()
    ]
