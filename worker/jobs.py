"""Periodic jobs: plain functions of the process's options, so that a test calls them without a queue.

None of them is needed for a right answer: they record and clean up what answers have left out already.
"""

import os
import uuid
from functools import cache

import redis

from registry import configuration, removal, store, trimming
from registry.drivers import run
from registry.keys import Keys
from registry.options import Options
from registry.plans import Act


@cache
def _options() -> Options:
    return configuration.load(os.environ)


@cache
def _store(url: str) -> redis.Redis:
    return store.connect(url)


def expire_brokers(options: Options | None = None) -> int:
    """Record the lapse of every member whose lease has run out; how many there were."""
    options = options or _options()
    return run(removal.expire(Keys(options.namespace), _act("expire")), _store(options.redis_url))


def settle_owed(options: Options | None = None) -> str:
    """Do the slices that removals owe and a dead process left; the id of the last event written, or ""."""
    options = options or _options()
    return run(removal.settle_owed(Keys(options.namespace), _act("settle")), _store(options.redis_url))


def trim_events(options: Options | None = None) -> dict[str, int]:
    """Copy operators' events to the audit stream and trim the events; what `registry.trimming.Trimmed` counts."""
    options = options or _options()
    plan = trimming.trim(
        Keys(options.namespace),
        retention_ms=options.events_retention_millis,
        max_bytes=options.events_max_bytes,
    )
    done = run(plan, _store(options.redis_url))
    return {"audited": done.audited, "passed": done.passed, "capped": done.capped}


def _act(name: str) -> Act:
    return Act(f"{name}-{uuid.uuid4().hex[:12]}", f"job:{name}")
