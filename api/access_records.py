"""Has the records of access of an HTTP process written, by a thread that comes when there is something to write."""

import logging
from collections.abc import Callable
from threading import Lock, Timer
from typing import Final
from weakref import WeakSet

from redis.exceptions import RedisError

from access.classes import AccessClass
from access.denials import Denied
from access.records import WRITE_EVERY_S, Records
from registry.errors import RegistryError
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["AccessRecords", "write_pending"]

log = RateLimitedLog(logging.getLogger(__name__), 60.0)
_of_process: Final = WeakSet["AccessRecords"]()


class AccessRecords:
    """The records of an application; `write` writes what these have, and raises RegistryError or RedisError."""

    def __init__(self, records: Records, write: Callable[[], None], every_s: float = WRITE_EVERY_S) -> None:
        self._records = records
        self._write = write
        self._every_s = every_s
        self._lock = Lock()
        self._timer: Timer | None = None
        _of_process.add(self)

    def used(self, credential: str) -> None:
        """Note that a credential has proved its principal."""
        self._records.uses.note(credential)
        self._begin()

    def denied(self, denied: Denied, of_class: AccessClass, peer: str) -> None:
        """Note that a known caller was refused."""
        self._records.denials.note(denied, of_class, peer)
        self._begin()

    def write(self) -> None:
        """Write what is new; what cannot be written is tried again each `every_s` seconds."""
        with self._lock:
            self._timer = None
        try:
            self._write()
        except (RegistryError, RedisError) as error:
            log.warning("records of access are not written: %s; they are once the store takes them", error)
        finally:
            if self._records.are_pending:
                self._begin()

    def _begin(self) -> None:
        """Have a thread write in a while, unless one will."""
        with self._lock:
            if self._timer is not None:
                return
            self._timer = Timer(self._every_s, self.write)
            self._timer.daemon = True  # the end of the process does not wait for it
            self._timer.start()


def write_pending() -> None:
    """Write what this process has, at its end."""
    for records in list(_of_process):
        records.write()
