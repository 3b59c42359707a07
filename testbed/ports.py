"""Free ports on loopback, below those that the system gives to outgoing connections.

A port is found some time before a server listens on it: so each process of `pytest -n` has a range of its own, and no
port is given twice."""

import os
import random
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

LOWEST, HIGHEST = 15_000, 32_000
RANGES = 16
FAST_CHANNEL, HA = -2, 1
"""A broker's other ports, as offsets from its listenPort (RocketMQ BrokerController)."""


_given: set[int] = set()


def free_port(*also: int) -> int:
    """Return a port p that is free, as is p + n for each n in `also`."""
    for port in _candidates():
        ports = {port + offset for offset in (0, *also)}
        if ports.isdisjoint(_given) and _free(ports):
            _given.update(ports)
            return port
    raise OSError("no free port is left")


def broker_port() -> int:
    """Return a free listenPort whose two derived ports are free too."""
    return free_port(FAST_CHANNEL, HA)


def _candidates() -> Iterator[int]:
    return iter(random.sample(_own_range(), 1000))


def _own_range() -> range:
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % RANGES
    size = (HIGHEST - LOWEST) // RANGES
    return range(LOWEST + process * size, LOWEST + (process + 1) * size + min(FAST_CHANNEL, 0))


def _free(ports: Iterable[int]) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("", port))
        except OSError:
            return False
    return True
