"""When each periodic job ended well last, the hash `tasks`: whichever process ran it, and if none lives any more."""

import re
from typing import Final, NamedTuple

from registry.clock import now_ms
from registry.keys import Keys
from registry.plans import Plan, call

__all__ = ["CHECK", "COUNT", "SUMMARIZE", "TASKS", "WALK", "TaskTime", "is_late", "note_success", "read"]

WALK: Final = "walk_tables"
COUNT: Final = "count_topics"
SUMMARIZE: Final = "summarize_events"
CHECK: Final = "check_routes"
"""It runs where `checkAddress` is set."""
TASKS: Final = (
    *("expire_brokers", "run_deferred", "trim_events", "checkpoint_tables"),
    *(WALK, COUNT, "examine", SUMMARIZE, CHECK),
)
"""All periodic jobs."""
SECOND_MS: Final = 1_000
LATE_MS: Final = 60_000
LATE_PERIODS: Final = 3
LONG_MS: Final = 600_000
"""What a count of a large namespace may take, and then a service has run each of its jobs."""
TEXT: Final = re.compile(r"([0-9]{1,14}),([0-9]{1,6})", re.ASCII)
"""`at_ms,every_s`; what is none was written by another hand, and counts as absent."""


class TaskTime(NamedTuple):
    """The end of the last run that ended well (Unix ms of the Redis clock), and how often it is to run."""

    at_ms: int
    every_s: int


def is_late(task: str, last: TaskTime | None, now_ms: int, started_ms: int | None) -> bool:
    """Return whether a job has not ended well for a minute and three of its periods; the count of topics, and a job
    that never did, for ten minutes, of the service that began at `started_ms`."""
    if last is None:
        return started_ms is not None and now_ms - started_ms > LONG_MS
    late_ms = LONG_MS if task == COUNT else LATE_MS + LATE_PERIODS * last.every_s * SECOND_MS
    return now_ms - last.at_ms > late_ms


def note_success(keys: Keys, task: str, every_s: int) -> Plan[None]:
    """Note that a run has ended well just now."""
    at_ms = yield from now_ms()
    yield call("HSET", keys.tasks, task, f"{at_ms},{every_s}")


def read(keys: Keys) -> Plan[dict[str, TaskTime]]:
    """Return those of all jobs that ever ran."""
    texts: dict[str, str] = yield call("HGETALL", keys.tasks)
    matches = ((task, TEXT.fullmatch(text)) for task, text in texts.items())
    return {task: TaskTime(int(match[1]), int(match[2])) for task, match in matches if match}
