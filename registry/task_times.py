"""When each periodic job ended well last, the hash `tasks`: whichever process ran it, and if none lives any more."""

import re
from typing import Final, NamedTuple

from registry.clock import now_ms
from registry.keys import Keys
from registry.plans import Plan, call

__all__ = ["TaskTime", "note_success", "read"]

TEXT: Final = re.compile(r"([0-9]{1,14}),([0-9]{1,6})", re.ASCII)
"""`at_ms,every_s`; what is none was written by another hand, and counts as absent."""


class TaskTime(NamedTuple):
    """The end of the last run that ended well (Unix ms of the Redis clock), and how often it is to run."""

    at_ms: int
    every_s: int


def note_success(keys: Keys, task: str, every_s: int) -> Plan[None]:
    """Note that a run has ended well just now."""
    at_ms = yield from now_ms()
    yield call("HSET", keys.tasks, task, f"{at_ms},{every_s}")


def read(keys: Keys) -> Plan[dict[str, TaskTime]]:
    """Return those of all jobs that ever ran."""
    texts: dict[str, str] = yield call("HGETALL", keys.tasks)
    matches = ((task, TEXT.fullmatch(text)) for task, text in texts.items())
    return {task: TaskTime(int(match[1]), int(match[2])) for task, match in matches if match}
