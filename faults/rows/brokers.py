"""Brokers that die at once: killed, or silent."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from faults.fleet import PERIOD_MS, Fleet
from faults.places import Place, plain
from faults.row import Row

PROCESSES = 10
LEASE_S = 3 * PERIOD_MS / 1000
"""Of silent brokers; 120 s by default, four of their periods."""
AWAY_S = 5.0


@contextmanager
def killed(share: int, place: Place, fleet: Fleet) -> Iterator[None]:
    """SIGKILL to so many percent of their processes; started again at the end."""
    victims = fleet.processes[: PROCESSES * share // 100]
    for victim in victims:
        victim.kill()
    yield
    for victim in victims:
        victim.start()


@contextmanager
def silent(share: int, place: Place, fleet: Fleet) -> Iterator[None]:
    """SIGSTOP to so many percent of their processes until their leases are over."""
    victims = fleet.processes[: PROCESSES * share // 100]
    for victim in victims:
        victim.stop()
    yield
    for victim in victims:
        victim.go_on()


def _killed(share: int) -> Row[Place]:
    return Row(
        name=f"brokers-killed-{share}",
        title=f"{share} % of the brokers killed at once, back after {AWAY_S:g} s",
        place=plain,
        fault=partial(killed, share),
        lasts_s=AWAY_S,
        processes=PROCESSES,
    )


def _silent(share: int) -> Row[Place]:
    return Row(
        name=f"brokers-silent-{share}",
        title=f"{share} % of the brokers hang until their leases of {LEASE_S:.0f} s are over, and go on",
        place=partial(plain, lease_s=LEASE_S),
        fault=partial(silent, share),
        lasts_s=LEASE_S + 5,
        processes=PROCESSES,
    )


ROWS = (*map(_killed, (10, 50, 100)), *map(_silent, (10, 50, 100)))
