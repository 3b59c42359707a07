"""Reads routes from the store for many lookups at once: those of one tick of the loop in one call of the script.

Not one with `AsyncDriver`, which joins items of scripts too: a call may read only the first of its topics, lookups in
line fail with the first that finds the store away, and a plan for each would cost a sixth of a lookup."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from redis.exceptions import ResponseError

from registry.drivers import AsyncDriver, unavailable
from registry.keys import Keys
from registry.long_work.limiter import Limiter
from registry.plans import within
from registry.routes import RoutesRead, read_long, routes_call
from worker.cache.routes import Fill

log = logging.getLogger(__name__)

TOPICS_MOST: Final = 128
"""Topics of one call, so that neither the script nor reading its reply delays others by much more than a
millisecond."""
CHARACTERS_MOST: Final = 100_000
"""Characters of their names; those that peers make up may be long."""
CALLS_MOST: Final = 2
"""Under way at once: the store works on one while the reply of the other is read, and lookups that come meanwhile share
the next."""
LONG_MOST: Final = 2
"""Routes too long for one script that are read at once; nothing is kept of those that wait."""

Taken = Callable[[Fill, RoutesRead | Exception, int], None]
"""Gets a fill, what was read or the error, and the number of its topic in what was read."""


class RouteReader:
    """Lives on one event loop; `taken` is called for each fill once."""

    def __init__(self, driver: AsyncDriver, keys: Keys, taken: Taken) -> None:
        self._driver = driver
        self._keys = keys
        self._taken = taken
        self._waiting: list[Fill] = []
        self._due = False
        self._under_way = 0
        self._limiter = Limiter(LONG_MOST)

    def ask(self, fill: Fill) -> None:
        """Read the topic of a fill, with the others of this tick of the loop."""
        self._waiting.append(fill)
        if not self._due and self._under_way < CALLS_MOST:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin_calls)

    def _begin_calls(self) -> None:
        self._due = False
        while self._waiting and self._under_way < CALLS_MOST:
            count = _some(self._waiting)
            fills, self._waiting = self._waiting[:count], self._waiting[count:]
            self._call(fills)

    def _call(self, fills: list[Fill]) -> None:
        self._under_way += 1
        topics = tuple([fill.key[0] for fill in fills])
        self._driver.ask(routes_call(self._keys, topics), partial(self._received, fills))

    def _received(self, fills: list[Fill], reply: Any) -> None:
        self._under_way -= 1
        if isinstance(reply, ResponseError) and len(fills) > 1 and not unavailable(reply):
            for fill in fills:  # which of them is wrong shows when each is asked alone
                self._call([fill])
            return
        if isinstance(reply, Exception):
            if unavailable(reply):  # those in line would wait long for the same
                fills, self._waiting = fills + self._waiting, []
            self._hand_on(fills, reply)
        else:
            read = RoutesRead(reply)
            self._waiting[:0] = fills[len(read) :]
            self._read(fills[: len(read)], read)
        self._begin_calls()

    def _read(self, fills: list[Fill], read: RoutesRead) -> None:
        """Hand on what was read; a route of which something is left is read again, with its limiter."""
        if read.whole:
            self._hand_on(fills, read)
        else:
            long = within(self._limiter, read_long(self._keys, fills[0].key[0]))
            self._driver.start(long, partial(self._read_long, fills))

    def _read_long(self, fills: list[Fill], read: RoutesRead | None, error: Exception | None) -> None:
        taken = error if read is None else read
        assert taken is not None
        self._hand_on(fills, taken)

    def _hand_on(self, fills: list[Fill], read: RoutesRead | Exception) -> None:
        for at, fill in enumerate(fills):
            self._take(fill, read, at)

    def _take(self, fill: Fill, read: RoutesRead | Exception, at: int) -> None:
        try:
            self._taken(fill, read, at)
        except Exception:  # no harm to the others
            log.exception(
                "a route that was read met a fault of this server; its clients ask again, report it"
            )


def _some(waiting: Sequence[Fill]) -> int:
    """Return how many of the fills one call may take, one at least."""
    characters = 0
    for count, fill in enumerate(waiting[:TOPICS_MOST]):
        characters += len(fill.key[0])
        if count and characters > CHARACTERS_MOST:
            return count
    return min(len(waiting), TOPICS_MOST)
