"""What a scrape is answered: the values of all processes of this container, and facts of the store."""

import logging
import struct
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from metrics.catalogue import CATALOGUE
from metrics.files import folder, locked
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["CONTENT_TYPE", "exposition"]

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
ABOUT: Final = {metric.full_name.removesuffix("_total"): metric.about for metric in CATALOGUE}
TRIES: Final = 3
"""A file may be read just when its process makes it."""

log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


class ProcessCollector(Collector):
    """Collects what the processes of this container publish (`metrics.publisher`)."""

    def collect(self) -> Iterator[Metric]:
        if (path := folder()) is None:
            return iter(())
        for left in reversed(range(TRIES)):
            try:
                with locked(path):
                    return map(_described, MultiProcessCollector(None, path=str(path)).collect())
            except (OSError, RuntimeError, ValueError, struct.error) as error:
                if not left:
                    log.warning(
                        "metrics of processes are left out, a file in %s cannot be read: %s; restart the server",
                        path,
                        error,
                    )
        return iter(())


def _described(family: Metric) -> Metric:
    family.documentation = ABOUT.get(family.name, "")
    return family


def exposition(*collectors: Collector) -> bytes:
    """Return the text of a scrape."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector(), *collectors):
        registry.register(collector)
    return generate_latest(registry)
