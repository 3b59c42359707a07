"""How many connections the limit of open files leaves room for."""

import logging
import resource
from typing import Final

log = logging.getLogger(__name__)

OWN_FILES: Final = 128
"""Descriptors of a worker besides its connections: listeners, log, one or two to the store for each thread."""


def connections_within_files(wanted: int) -> int:
    """Raise the soft limit towards what `wanted` connections need, and return for how many it is enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    fitting = max(1, soft - OWN_FILES)
    log.warning(
        "httpMaxConnections=%d needs %d open files and the limit is %d, so it is %d here; raise the hard limit",
        wanted,
        needed,
        soft,
        fitting,
    )
    return fitting
