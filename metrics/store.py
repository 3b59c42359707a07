"""Facts of the store as metrics, the same at every HTTP worker: read when they are scraped, at most each CACHED_S."""

import logging
from collections.abc import Iterator
from threading import Lock
from time import monotonic
from typing import Final, Protocol, TypeVar

import msgspec
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from metrics import pipeline
from metrics.samples import families
from registry.clock import now_ms
from registry.errors import StoreUnavailable
from registry.keys import Keys
from registry.plans import Plan
from worker.logs.rate_limited_log import RateLimitedLog

CACHED_S: Final = 5.0
LOG_EVERY_S: Final = 60.0
T = TypeVar("T")


class Run(Protocol):
    """Runs a plan on the store (`registry.drivers.run`)."""

    def __call__(self, plan: Plan[T]) -> T: ...


class StoreCollector(Collector):
    """Collects them for the client library. While the store is away, or damaged where they are, they are absent."""

    def __init__(self, keys: Keys, run: Run) -> None:
        self._keys = keys
        self._run = run
        self._lock = Lock()
        self._log = RateLimitedLog(logging.getLogger(__name__), LOG_EVERY_S)
        self._until = 0.0
        self._families: tuple[Metric, ...] = ()
        self._figures: pipeline.Figures | None = None

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if monotonic() >= self._until:
                self._families = self._read()
                self._until = monotonic() + CACHED_S
            return iter(self._families)

    def _read(self) -> tuple[Metric, ...]:
        try:
            self._figures = self._run(pipeline.read_figures(self._keys, self._figures))
            landings = self._run(pipeline.read_landings(self._keys))
            samples = pipeline.samples(self._run(now_ms()), landings, self._figures)
            return tuple(families(samples, self._keys.namespace))
        except StoreUnavailable:
            return ()  # readiness says so
        except (RedisError, msgspec.MsgspecError, ValueError) as error:
            self._log.warning(
                "metrics of the pipeline are left out, the store has what no run writes: %s; run the pipeline again",
                error,
            )
            return ()
