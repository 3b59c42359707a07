"""Periodic jobs: plain functions of the process's options, so that a test calls them without a queue.

None of them is needed for a right answer: they record and clean up what answers have left out already.
"""

import os
import uuid
from functools import cache

import msgspec
import redis

from registry import configuration, removal, rounds, store, trimming
from registry.drivers import run
from registry.keys import Keys
from registry.options import SECRETS, Options
from registry.plans import Act

SLICES = 200  # of a checkpoint round in one run of its job: a tenth of a second, for other jobs wait


@cache
def _options() -> Options:
    return configuration.load(os.environ)


@cache
def _store(options: Options) -> redis.Redis:
    return store.connect(options.redis_url, options.namespace)


def expire_brokers(options: Options | None = None) -> int:
    """Record the lapse of every member whose lease has run out; how many there were."""
    options = options or _options()
    return run(removal.expire(Keys(options.namespace), _act("expire")), _store(options))


def settle_owed(options: Options | None = None) -> str:
    """Do the slices that removals owe and a dead process left; the id of the last event written, or ""."""
    options = options or _options()
    return run(removal.settle_owed(Keys(options.namespace), _act("settle")), _store(options))


def trim_events(options: Options | None = None) -> dict[str, int]:
    """Copy operators' events to the audit stream and trim the events; what `registry.trimming.Trimmed` counts."""
    options = options or _options()
    plan = trimming.trim(
        Keys(options.namespace),
        _act("trim"),
        retention_ms=options.events_retention_millis,
        max_bytes=options.events_max_bytes,
    )
    return msgspec.structs.asdict(run(plan, _store(options)))


def restate_tables(options: Options | None = None) -> dict[str, int]:
    """Begin a checkpoint round if one is asked for, or go on with it; what `registry.rounds.Carried` counts."""
    options = options or _options()
    plan = rounds.carry_on(Keys(options.namespace), _act("restate"), slices=SLICES, hidden=SECRETS)
    return msgspec.structs.asdict(run(plan, _store(options)))


def _act(name: str) -> Act:
    return Act(f"{name}-{uuid.uuid4().hex[:12]}", f"job:{name}")
