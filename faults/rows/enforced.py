"""The rows in which the store fails, once more with access enforced: none is let in, none cut off because of it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from faults.access import Enforcement
from faults.fleet import Fleet
from faults.places import Stored, plain
from faults.row import Promise, Row, Topics
from faults.rows import networks, stores, topologies
from testbed.eventually import eventually
from testbed.processes import send

AWAY: Final = frozenset({"redis-kill", "redis-stop", "redis-hanging", "redis-cut"})
"""Rows in which no process reaches the store, for long enough that each caller asks then."""
SUFFIX: Final = "-enforced"
BEGINS_WITHIN_S: Final = 8.0


def _once_more(row: Row[Any]) -> Row[Any]:
    enforcement = Enforcement(away=row.name in AWAY, tokens_lost=row.name == "redis-empty")
    title = f"{row.title}; access enforced"
    return replace(row, name=row.name + SUFFIX, title=title, enforcement=enforcement, look=None)


@contextmanager
def stopped_and_a_worker_killed(place: Stored, fleet: Fleet) -> Iterator[None]:
    """SIGSTOP, and a worker that begins without a store to ask."""
    victim = place.family.remoting_workers[0]
    place.store.process.signal(signal.SIGSTOP)
    send(signal.SIGKILL, victim)
    eventually(lambda: place.whole(but={victim}), BEGINS_WITHIN_S)
    yield
    place.store.process.signal(signal.SIGCONT)


ROWS: tuple[Row[Any], ...] = (
    *map(_once_more, (*stores.ROWS, *networks.ROWS, *topologies.ROWS)),
    Row(
        name=f"redis-stop-worker{SUFFIX}",
        title=f"SIGSTOP of Redis for {stores.STOPPED_S:.0f} s, and kill -9 of one of two workers; access enforced",
        place=plain,
        fault=stopped_and_a_worker_killed,
        lasts_s=stores.STOPPED_S,
        promise=Promise(
            registrations_fail=True,
            lookups_fail=Topics.ALL,
            unanswered_s=stores.STOPPED_S + BEGINS_WITHIN_S + 3.0,
            recovers_s=3.0,
        ),
        enforcement=Enforcement(away=True, workers_begin=True),
    ),
)
