"""What a scrape is answered: the values of all processes of this container, and facts of the store."""

import logging
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from metrics.catalogue import CATALOGUE
from metrics.files import folder, locked
from metrics.readable import UNREADABLE, readable, written
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["CONTENT_TYPE", "exposition"]

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
ABOUT: Final = {metric.full_name.removesuffix("_total"): metric.about for metric in CATALOGUE}
TRIES: Final = 3
"""A file may be read just when its process makes it; what cannot be read at last is left out."""

log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


class ProcessCollector(Collector):
    """Collects what the processes of this container publish (`metrics.publisher`)."""

    def collect(self) -> Iterator[Metric]:
        if (path := folder()) is None or not path.is_dir():
            return iter(())
        for left in reversed(range(TRIES)):
            try:
                with locked(path):
                    files = (written if left else readable)(path.glob("*.db"))
                    return map(_described, MultiProcessCollector.merge(files))
            except UNREADABLE as error:
                if not left:
                    log.warning(
                        "metrics of processes are left out, %s cannot be read: %s; remove its files, the processes "
                        "write them again",
                        path,
                        error,
                    )
        return iter(())


def _described(family: Metric) -> Metric:
    family.documentation = ABOUT.get(family.name, "")
    return family


def exposition(of_store: str = "") -> bytes:
    """Return the text of a scrape; `of_store` is that of metrics of the store."""
    registry = CollectorRegistry()
    registry.register(ProcessCollector())
    return generate_latest(registry) + of_store.encode()
