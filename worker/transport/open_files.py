"""The limit of open files, and what of it connections leave to all else: the store's connections, probes, log files.

Without that a worker full of connections could not reconnect to its store, and would answer no request."""

import os
import resource
from typing import Final

__all__ = ["fitting", "left_to_connections", "limit", "reserve_is_whole"]

OWN: Final = 256
"""Descriptors of a worker besides its connections, generously."""


def fitting(connections: int) -> int:
    """Raise the limit towards what so many connections need (0: any number); return how many fit the one there is."""
    soft, hard = _limits()
    wanted = connections + OWN if connections else hard
    if soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    fit = max(soft - _own(soft), 1)
    return min(connections, fit) if connections else fit


def limit() -> int:
    """Return how many files this process may have open; it may be changed from outside."""
    return _limits()[0]


def left_to_connections() -> int:
    """Return the number from which on descriptors are no longer for connections: half of what others may need."""
    most = limit()
    return most - _own(most) // 2


def reserve_is_whole(example: int) -> bool:
    """Return whether a connection would get a descriptor below that: `example` is any open one.

    The system gives out the lowest that is free."""
    try:
        lowest = os.dup(example)
    except OSError:
        return False
    os.close(lowest)
    return lowest < left_to_connections()


def _own(most: int) -> int:
    return min(OWN, most // 2)


def _limits() -> tuple[int, int]:
    """The soft and the hard one; Linux has no infinite one of open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)
