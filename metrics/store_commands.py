"""Commands of one process to the store: how long they took, how they failed, whether it answers."""

from collections.abc import Iterator, Sequence
from typing import Final

from redis.exceptions import (
    BusyLoadingError,
    ConnectionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,
)

from metrics.catalogue import REDIS_COMMAND_DURATION, REDIS_ERRORS, REDIS_RECONNECTS, REDIS_UP
from metrics.counts import Counts, Histogram, Histograms, Observed
from metrics.samples import Sample
from registry.drivers import unavailable
from registry.plans import Call, ScriptCall

__all__ = ["StoreCommands"]

READS: Final = frozenset(
    (
        *("EXISTS", "GET", "TYPE"),
        *("HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HRANDFIELD", "HSCAN"),
        *("SCARD", "SISMEMBER", "SMEMBERS", "SMISMEMBER", "SRANDMEMBER", "SSCAN"),
        *("ZCARD", "ZCOUNT", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE", "ZSCAN", "ZSCORE"),
        *("XLEN", "XRANGE", "XREAD", "XREVRANGE"),
        *("INFO", "MEMORY", "PING", "TIME"),
    )
)
KINDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (TimeoutError, "timeout"),
    (BusyLoadingError, "busy"),
    (ReadOnlyError, "readonly"),
    (OutOfMemoryError, "oom"),
    (ConnectionError, "connection"),
    (OSError, "connection"),
)


class StoreCommands:
    """Is called as `registry.drivers.Observe`."""

    def __init__(self) -> None:
        self._durations = Histograms(REDIS_COMMAND_DURATION)
        self._errors = Counts(REDIS_ERRORS)
        self._of: dict[str, Histogram] = {}
        self._reconnects = 0
        self._is_up = True

    def __call__(
        self, requests: Sequence[Call | ScriptCall], seconds: float, replies: Sequence[object]
    ) -> None:
        """Count a round trip: each of its commands took as long as all together."""
        for request, reply in zip(requests, replies, strict=True):
            name = request.name if isinstance(request, ScriptCall) else str(request.args[0])
            histogram = self._of.get(name)
            if histogram is None:
                histogram = self._of[name] = self._durations.of(_label(request))
            histogram.observe(seconds)
            is_to_be_sent = isinstance(reply, NoScriptError)  # the driver sends the script then
            if isinstance(reply, Exception) and not is_to_be_sent:
                self._errors.add(kind_of(reply))
        self._note(bool(replies) and isinstance(replies[0], Exception) and unavailable(replies[0]))

    def _note(self, is_away: bool) -> None:
        self._reconnects += not is_away and not self._is_up
        self._is_up = not is_away

    def read(self) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics."""
        yield from self._durations.read()
        yield from self._errors.read()
        yield Sample(REDIS_UP, (), self._is_up)
        yield Sample(REDIS_RECONNECTS, (), self._reconnects)


def kind_of(error: BaseException) -> str:
    """Return an error's kind, as metrics have it."""
    if str(error).startswith("BUSY "):
        return "busy"
    return next((kind for type_, kind in KINDS if isinstance(error, type_)), "other")


def _label(request: Call | ScriptCall) -> str:
    if isinstance(request, ScriptCall):
        return request.name
    return "read" if str(request.args[0]).upper() in READS else "other"
