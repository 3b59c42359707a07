"""How many connections and watchers the limit of open files leaves room for."""

import logging
import resource
from typing import Final

log = logging.getLogger(__name__)

OWN_FILES: Final = 128
"""Descriptors of a worker besides its connections: listeners, log, one or two to the store for each thread."""


def watchers_within_files(wanted: int, connections: int) -> int:
    """Return how many watchers there may be: what so many other connections leave of the limit, half of it at least."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    files = soft - OWN_FILES
    return max(0, min(wanted, max(files // 2, files - connections)))


def connections_within_files(wanted: int, watchers: int = 0) -> int:
    """Raise the soft limit towards what `wanted` connections and so many watchers need; return for how many connections
    it is enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + watchers + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    fitting = max(1, min(wanted, soft - OWN_FILES - watchers_within_files(watchers, wanted)))
    log.warning(
        "httpMaxConnections=%d needs %d open files and the limit is %d, so it is %d here; raise the hard limit",
        wanted,
        needed,
        soft,
        fitting,
    )
    return fitting
