"""Log lines that a peer can cause, rate-limited so that no peer can fill the disk."""

import logging
from collections.abc import Callable
from time import monotonic

from registry.errors import cause_of

__all__ = ["RateLimitedLog"]


class RateLimitedLog:
    """At most one line in `every_s` seconds for each message text; the next one says how many were left out."""

    def __init__(
        self, log: logging.Logger, every_s: float = 5.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._log = log
        self._every_s = every_s
        self._clock = clock
        self._next: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warning(self, message: str, *args: object, error: BaseException | None = None) -> None:
        """Log `message % args`, with the traceback of `error`, unless the like was logged just now.

        `message` must be a constant: what a peer sends belongs in `args`. An error there that has no text is named by
        its type."""
        now = self._clock()
        if now < self._next.get(message, now):
            self._left_out[message] = self._left_out.get(message, 0) + 1
            return
        self._next[message] = now + self._every_s
        if left_out := self._left_out.pop(message, 0):
            message, args = message + " (and %d more like it)", (*args, left_out)
        self._log.warning(message, *map(_named, args), exc_info=error)


def _named(arg: object) -> object:
    return cause_of(arg) if isinstance(arg, BaseException) and not str(arg) else arg
