"""When each periodic job ended well last."""

from metrics.catalogue import TASK, TASK_INTERVAL, TASK_LAST_SUCCESS
from metrics.samples import Sample
from registry import task_times
from registry.keys import Keys
from registry.plans import Plan

__all__ = ["read"]


def read(keys: Keys) -> Plan[list[Sample]]:
    """Return it of the jobs that ever ran here."""
    times = yield from task_times.read(keys)
    known = {task: time for task, time in times.items() if task in TASK.values}
    return [
        *(Sample(TASK_LAST_SUCCESS, (task,), time.at_ms / 1000) for task, time in known.items()),
        *(Sample(TASK_INTERVAL, (task,), time.every_s) for task, time in known.items()),
    ]
