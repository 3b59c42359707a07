"""The Redis of the service: killed, stopped, emptied, full."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from faults.fleet import PERIOD_MS, Fleet
from faults.looks import Look, When
from faults.places import Stored, plain
from faults.row import Promise, Row, Topics

STOPPED_S = 10.0
AWAY = Promise(registrations_fail=True, lookups_fail=Topics.CHANGING, recovers_s=3.0)
"""Cached routes are still served; brokers get an error and retry."""

STORE_AWAY: Look[Any] = Look(shows=("ERROR store-away at ", r"the store \(Redis\) is away: "))
EMPTY = replace(AWAY, behind_s=PERIOD_MS / 1000 + 2)
"""Brokers are shown as they were until they register again, also those that unregister before."""


@contextmanager
def killed(place: Stored, fleet: Fleet) -> Iterator[None]:
    """SIGKILL; started again at the end, with what it finds on its disk."""
    place.store.kill()
    yield
    place.store.begin()
    place.store.await_answer()


@contextmanager
def stopped(place: Stored, fleet: Fleet) -> Iterator[None]:
    """Send SIGSTOP: its connections stay, and it answers nothing."""
    place.store.process.signal(signal.SIGSTOP)
    yield
    place.store.process.signal(signal.SIGCONT)


@contextmanager
def full(place: Stored, fleet: Fleet) -> Iterator[None]:
    """No more memory than it has, and nothing may be evicted."""
    with place.store.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
        yield
        client.config_set("maxmemory", 0)


ROWS = (
    Row(
        name="redis-kill",
        title="kill -9 of Redis, back after 5 s with its AOF",
        place=plain,
        fault=killed,
        lasts_s=5.0,
        promise=AWAY,
        look=STORE_AWAY,
    ),
    Row(
        name="redis-stop",
        title=f"SIGSTOP of Redis for {STOPPED_S:.0f} s",
        place=plain,
        fault=stopped,
        lasts_s=STOPPED_S,
        promise=AWAY,
        look=STORE_AWAY,
    ),
    Row(
        name="redis-empty",
        title="kill -9 of Redis without persistence: back after 2 s, empty",
        place=partial(plain, aof=False),
        fault=killed,
        lasts_s=2.0,
        promise=EMPTY,
        look=Look(shows=["empty"], when=When.OVER),
    ),
    Row(
        name="redis-full",
        title="memory of Redis full (maxmemory, noeviction) for longer than a heartbeat period",
        place=plain,
        fault=full,
        lasts_s=PERIOD_MS / 1000 + 2,
        promise=AWAY,
        look=Look(shows=("ERROR store-full at ", "bytes of maxmemory are used")),
    ),
)
