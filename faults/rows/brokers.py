"""Brokers that die at once: killed, or silent."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from faults.fleet import JOINED_WITHIN_S, PERIOD_MS, Fleet
from faults.looks import Look
from faults.places import Place, plain
from faults.row import Row
from testbed.eventually import eventually

PROCESSES = 10
LEASE_S = 3 * PERIOD_MS / 1000
"""The lease of silent brokers; 120 s by default, four of their periods."""
AWAY_S = 5.0


@contextmanager
def killed(percent: int, place: Place, fleet: Fleet) -> Iterator[None]:
    """Send SIGKILL to `percent` % of their processes; over when all have registered again."""
    victims = fleet.processes[: PROCESSES * percent // 100]
    for victim in victims:
        victim.kill()
    yield
    again = time.monotonic()
    for victim in victims:
        victim.start()
    names = {name for victim in victims for name in victim.names}
    eventually(lambda: not fleet.away(again) & names, JOINED_WITHIN_S)


@contextmanager
def silent(percent: int, place: Place, fleet: Fleet) -> Iterator[None]:
    """Send SIGSTOP to `percent` % of their processes until their leases are over."""
    victims = fleet.processes[: PROCESSES * percent // 100]
    for victim in victims:
        victim.stop()
    yield
    for victim in victims:
        victim.go_on()


SILENT: Look[Place] = Look(shows=("lease-ending at ", "its last heartbeat was "), after_s=LEASE_S * 2 / 3)


def _killed(percent: int) -> Row[Place]:
    return Row(
        name=f"brokers-killed-{percent}",
        title=f"{percent} % of the brokers killed at once, back after {AWAY_S:g} s",
        place=plain,
        fault=partial(killed, percent),
        lasts_s=AWAY_S,
        processes=PROCESSES,
        look=Look(shows=["broker_removed.*lost.*broker-0"]),
    )


def _silent(percent: int) -> Row[Place]:
    return Row(
        name=f"brokers-silent-{percent}",
        title=f"{percent} % of the brokers hang until their leases of {LEASE_S:.0f} s are over, and go on",
        place=partial(plain, lease_s=LEASE_S),
        fault=partial(silent, percent),
        lasts_s=LEASE_S + 5,
        processes=PROCESSES,
        look=SILENT,
    )


ROWS = (*map(_killed, (10, 50, 100)), *map(_silent, (10, 50, 100)))
