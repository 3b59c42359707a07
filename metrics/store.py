"""Facts of the store as metrics, the same at every HTTP worker: read when they are scraped, but not all the time."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from threading import Lock
from time import monotonic
from typing import Final, Protocol, TypeVar

import msgspec
from redis.exceptions import RedisError

from metrics import brokers, doctor, drift, events, tasks, topics
from metrics.catalogue import BUILD_INFO, NAMESERVER_UP
from metrics.pipeline import PipelineFacts
from metrics.samples import Sample, text
from registry.errors import StoreUnavailable
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.members import lease_clock
from registry.options.catalogue import Options
from registry.plans import Plan
from rocketmq_remoting.version import CURRENT, version_name
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["StoreMetrics"]

BUILD: Final = Sample(BUILD_INFO, (version("redis-namesrv"), version_name(CURRENT)), 1)
CACHED_S: Final = 5.0
CACHED_TIMES: Final = 20
"""What took long to read is cached for so many times as long."""
LOG_EVERY_S: Final = 60.0
T = TypeVar("T")


class Run(Protocol):
    """Runs a plan on the store (`registry.drivers.run`)."""

    def __call__(self, plan: Plan[T]) -> T: ...


class StoreMetrics:
    """Reads them. While the store is away, or damaged where they are, they are absent."""

    def __init__(self, keys: Keys, options: Options, run: Run) -> None:
        self._keys = keys
        self._run = run
        self._lock = Lock()
        self._log = RateLimitedLog(logging.getLogger(__name__), LOG_EVERY_S)
        self._until = 0.0
        self._text = ""
        limits, most = Limits.of(options), options.events_max_bytes
        self._sources: Mapping[str, Callable[[], Plan[list[Sample]]]] = {
            "brokers": partial(brokers.read, keys),
            "topics": partial(topics.read, keys),
            "events": partial(events.read, keys, limits, most),
            "jobs": partial(tasks.read, keys),
            "findings": partial(doctor.read, keys),
            "comparisons": partial(drift.read, keys),
            "the pipeline": partial(PipelineFacts().read, keys),
        }

    def text(self) -> str:
        """Return the text of what was read just now, or a short while ago."""
        with self._lock:
            began = monotonic()
            if began >= self._until:
                keep_s = CACHED_S
                try:
                    samples = self._read_all()
                    keep_s = max(keep_s, CACHED_TIMES * (monotonic() - began))
                except StoreUnavailable:  # redis_up says so; looked at again soon, however long this took
                    samples = [Sample(NAMESERVER_UP, (), 0)]
                self._text = text([BUILD, *samples], self._keys.namespace)
                self._until = monotonic() + keep_s
            return self._text

    def _read_all(self) -> list[Sample]:
        ready = Sample(NAMESERVER_UP, (), self._is_ready())
        return [ready, *(sample for source in self._sources for sample in self._read(source))]

    def _is_ready(self) -> bool:
        try:
            clock = self._run(lease_clock(self._keys))
        except RedisError:
            return False
        return clock.started_ms is not None and not (clock.late or clock.unfollowed)

    def _read(self, source: str) -> list[Sample]:
        try:
            samples = self._run(self._sources[source]())
            return [sample._replace(value=float(sample.value)) for sample in samples]
        except (RedisError, msgspec.MsgspecError, ValueError, OverflowError) as error:
            self._log.warning(
                f"metrics of {source} are left out, the store has what this server does not write: %s; see whether "
                "something else does",
                error,
                kind=source,
            )
            return []
