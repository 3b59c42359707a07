"""Free ports on loopback, below those that the system gives to outgoing connections."""

import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

LOWEST, HIGHEST = 15_000, 32_000
FAST_CHANNEL, HA = -2, 1
"""What a broker opens besides its listenPort, counted from that (RocketMQ BrokerController)."""


def free_port(*also: int) -> int:
    """A port p that nobody uses, nor p + n for each n in `also`."""
    return next(port for port in _candidates() if _free([port + offset for offset in (0, *also)]))


def broker_port() -> int:
    """A free listenPort with the two that a broker derives from it."""
    return free_port(FAST_CHANNEL, HA)


def _candidates() -> Iterator[int]:
    return iter(random.sample(range(LOWEST, HIGHEST), 1000))


def _free(ports: Sequence[int]) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("", port))
        except OSError:
            return False
    return True
