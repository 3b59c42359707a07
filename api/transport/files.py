"""How many connections and watchers the limit of open files leaves room for."""

import logging
import resource
from typing import Final

log = logging.getLogger(__name__)

OWN_FILES: Final = 128
"""Descriptors of a worker besides its connections: listeners, log, one or two to the store for each thread."""


def watchers_within_files(wanted: int) -> int:
    """Return how many watchers there may be besides other connections: half of what the limit leaves at most."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(0, min(wanted, (soft - OWN_FILES) // 2))


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
    fitting = max(1, min(wanted, soft - OWN_FILES - watchers_within_files(watchers)))
    log.warning(
        "httpMaxConnections=%d needs %d open files and the limit is %d, so it is %d here; raise the hard limit",
        wanted,
        needed,
        soft,
        fitting,
    )
    return fitting
