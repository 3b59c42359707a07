"""Which files of the folder a scrape can read: one that cannot be read costs its own values and no others."""

import logging
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prometheus_client.multiprocess import MultiProcessCollector

from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["UNREADABLE", "readable", "written"]

UNREADABLE: Final = (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, struct.error)
"""What the client library raises of a file that is none of its own, or is just being made."""

log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


def written(files: Iterable[Path]) -> list[str]:
    """Return the files that have values: a process that found no room for them has left empty ones. Raises OSError."""
    return [str(file) for file in files if file.stat().st_size]


def readable(files: Iterable[Path]) -> list[str]:
    """Return the files that can be read, each by itself; a line names the others."""
    known, unreadable = list[str](), dict[str, BaseException]()
    for file in files:
        try:
            names = written([file])
            MultiProcessCollector.merge(names)
            known += names
        except FileNotFoundError:
            continue
        except UNREADABLE as error:
            unreadable[str(file)] = error
    if unreadable:
        log.warning(
            "files in the folder of metrics cannot be read, and are left out: %s (%s); remove them, a process of this "
            "server writes again what was its own",
            ", ".join(unreadable),
            next(iter(unreadable.values())),
        )
    return known
