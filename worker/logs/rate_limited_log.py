"""Log lines that a peer can cause, rate-limited so that no peer can fill the disk."""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

from registry.errors import cause_of

__all__ = ["RateLimitedFilter", "RateLimitedLog"]

MORE: Final = " (and %d more like it)"


class _Limit:
    """Counts what was left out of each message text and kind since it was logged last."""

    def __init__(self, every_s: float, clock: Callable[[], float]) -> None:
        self._every_s = every_s
        self._clock = clock
        self._next: dict[tuple[str, str], float] = {}
        self._left_out: dict[tuple[str, str], int] = {}

    def admit(self, message: str, kind: str = "") -> int | None:
        """Return how many like it were left out before; None if this one is to be left out, too."""
        now, like = self._clock(), (message, kind)
        if now < self._next.get(like, now):
            self._left_out[like] = self._left_out.get(like, 0) + 1
            return None
        self._next[like] = now + self._every_s
        return self._left_out.pop(like, 0)


class RateLimitedLog:
    """At most one line in `every_s` seconds for each text and kind; the next one says how many were left out."""

    def __init__(
        self, log: logging.Logger, every_s: float = 5.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._log = log
        self._limit = _Limit(every_s, clock)

    def warning(
        self, message: str, *args: object, kind: str = "", error: BaseException | None = None
    ) -> None:
        """Log `message % args`, with the traceback of `error`, unless the like was logged just now.

        `message` must be a constant: what a peer sends belongs in `args`. Messages of each `kind` count by themselves,
        of which there may be few: the key of an option. An error in `args` that has no text is named by its type."""
        self._write(logging.WARNING, message, args, kind, error)

    def error(self, message: str, *args: object) -> None:
        """As `warning`, of what an operator has to correct."""
        self._write(logging.ERROR, message, args)

    def _write(
        self,
        level: int,
        message: str,
        args: tuple[object, ...],
        kind: str = "",
        error: BaseException | None = None,
    ) -> None:
        left_out = self._limit.admit(message, kind)
        if left_out is None:
            return
        if left_out:
            message, args = message + MORE, (*args, left_out)
        self._log.log(level, message, *map(_named, args), exc_info=error)


class RateLimitedFilter(logging.Filter):
    """The same for all lines of a library's logger, to which it is added."""

    def __init__(self, every_s: float, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._limit = _Limit(every_s, clock)

    def filter(self, record: logging.LogRecord) -> bool:
        left_out = self._limit.admit(str(record.msg))
        if left_out and isinstance(record.args, tuple):
            record.msg, record.args = f"{record.msg}{MORE}", (*record.args, left_out)
        return left_out is not None


def _named(arg: object) -> object:
    return cause_of(arg) if isinstance(arg, BaseException) and not str(arg) else arg
