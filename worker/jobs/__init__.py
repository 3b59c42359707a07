"""Periodic jobs: what they do, when they run, and the processes that run them.

RQ stores a job as the name of its function, and those that 0.1 enqueued are called `worker.jobs.<function>`."""

from importlib import import_module
from typing import Any, Final

NAMES_OF_0_1: Final = {
    "expire_brokers": "expire_brokers",
    "settle_owed": "run_deferred",
    "trim_events": "trim_events",
    "restate_tables": "checkpoint_tables",
}
"""Functions of `worker.jobs.tasks` by the names of 0.1; they go with the next release."""


def __getattr__(name: str) -> Any:
    """A job by its old name. `worker.jobs.tasks` is imported no sooner: probes import this package, too."""
    if name not in NAMES_OF_0_1:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("worker.jobs.tasks"), NAMES_OF_0_1[name])
