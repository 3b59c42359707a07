"""Periodic jobs: plain functions of the process's options, so that a test calls them without a queue.

No reply depends on them: they record and clean up what replies have left out already.
"""

import os
import uuid
from functools import cache
from typing import TypeVar

import msgspec
import redis

from registry import removal
from registry.drivers import run
from registry.events import trim as trimming
from registry.events.checkpoint import checkpoint
from registry.keys import Keys
from registry.options import load as configuration
from registry.options.catalogue import Options
from registry.plans import Origin, Plan
from worker.jobs.job_process import TRIMMED, connected, observer
from worker.jobs.unread_log import UnreadLog

SLICES = 200  # of a checkpoint round in one run of its job: a tenth of a second, for other jobs wait

T = TypeVar("T")

unread = UnreadLog()


@cache
def _options() -> Options:
    return configuration.load(os.environ)


def expire_brokers(options: Options | None = None) -> int:
    """Record the lapse of every member whose lease has ended; return how many there were."""
    options = options or _options()
    return _run(removal.expire(Keys(options.namespace), _origin("expire")), options)


def run_deferred(options: Options | None = None) -> str:
    """Do the clean-up that removals left pending; return the id of the last event written, or ""."""
    options = options or _options()
    return _run(removal.run_deferred(Keys(options.namespace), _origin("settle")), options)


def trim_events(options: Options | None = None) -> dict[str, object]:
    """Copy operators' events to the audit stream and trim the events; return the fields of `trim.Trimmed`.

    If Redis refuses a command of it, as for a key of a wrong type, memory is bounded all the same."""
    options = options or _options()
    keys = Keys(options.namespace)
    plan = trimming.trim(
        keys,
        _origin("trim"),
        retention_ms=options.events_retention_millis,
        max_bytes=options.events_max_bytes,
    )
    try:
        trimmed = _run(plan, options)
    except redis.ResponseError:
        _run(trimming.trim_to_memory(keys, options.events_max_bytes), options)
        raise
    TRIMMED.add("passed", by=trimmed.passed)
    TRIMMED.add("cap", by=trimmed.capped)
    TRIMMED.add("audit", by=trimmed.copies_trimmed)
    unread.report(keys, trimmed)
    return msgspec.structs.asdict(trimmed)


def checkpoint_tables(options: Options | None = None) -> dict[str, int]:
    """Begin a checkpoint round if one is requested, or go on with it; return
    the counts of `checkpoint.Progress`."""
    options = options or _options()
    plan = checkpoint(Keys(options.namespace), _origin("restate"), slices=SLICES)
    return msgspec.structs.asdict(_run(plan, options))


def _run(plan: Plan[T], options: Options) -> T:
    return run(plan, connected(options), observer(options))


def _origin(name: str) -> Origin:
    return Origin(f"{name}-{uuid.uuid4().hex[:12]}", f"job:{name}")
