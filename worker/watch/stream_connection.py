"""The connection over which the stream of events is read: made again whenever it ends, and when it is doubted."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

import redis.asyncio
from redis.exceptions import RedisError

from registry.errors import StoreUnavailable
from worker.logs.rate_limited_log import RateLimitedLog
from worker.watch.boot_clock import boot_time

PAUSE_S = 0.05
PAUSE_MAX_S = 0.25
RECONNECT_S = PAUSE_MAX_S + 0.05  # at most, once the store answers

log = RateLimitedLog(logging.getLogger(__name__))


class StreamConnection(ABC):
    """Base of what reads a stream (`_catch_up`, then `_read` for ever). Made on the loop it will run on."""

    stream = "the event stream"
    """What log lines call it."""

    def __init__(self, connect: Callable[[], redis.asyncio.Redis]) -> None:
        self._connect = connect
        self._following = asyncio.Event()
        self._read_at = boot_time()
        self._doubted = False
        self._life: asyncio.Timeout | None = None  # of the present connection

    @abstractmethod
    async def _catch_up(self, store: redis.asyncio.Redis) -> None:
        """Read what is in the stream already, once at least."""

    @abstractmethod
    async def _read(self, store: redis.asyncio.Redis) -> object:
        """Read what comes next."""

    @abstractmethod
    def _broken(self) -> None:
        """Forget what was read in part."""

    async def run(self) -> None:
        """Follow until cancelled."""
        pause = PAUSE_S
        while True:
            store = self._connect()
            try:
                async with asyncio.timeout(None) as self._life:
                    self._doubted = False
                    await self._catch_up(store)
                    if not self._doubted:
                        self._following.set()
                        if pause > PAUSE_S:
                            log.warning("%s is followed again", self.stream)
                        pause = PAUSE_S
                    while not self._doubted:  # redis-py may lose the cancellation: see worker.background
                        await self._read(store)
            except (RedisError, OSError, TimeoutError, StoreUnavailable) as error:
                if not self._doubted:
                    log.warning(
                        "%s cannot be followed: %s; retries within %g s", self.stream, error, PAUSE_MAX_S
                    )
            finally:
                self._life = None
                self._following.clear()
                self._broken()
                await store.aclose()
            if not self._doubted:
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_MAX_S)

    @property
    def connected(self) -> bool:
        """Whether the stream is followed now: what was in it has been applied, and the next entry would be seen."""
        return self._following.is_set()

    def disconnected_for_s(self) -> float:
        """Return for how many seconds the stream could not be followed; 0 while it is."""
        return 0.0 if self.connected else self.silent_for_s()

    def silent_for_s(self) -> float:
        """Return how many seconds ago the stream was read last: changes were applied, or there were none.

        A connection that is made, or a check of where the reader is, is no read: those may work where reads fail."""
        return boot_time() - self._read_at

    def doubt(self) -> None:
        """Be connected no more until the stream was read over another connection: what came over this one may be long
        ago."""
        self._following.clear()
        if self._life is not None and not self._doubted:
            self._doubted = True
            self._life.reschedule(asyncio.get_running_loop().time())

    async def following(self, timeout_s: float) -> bool:
        """Wait until this is connected; False if it is not in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._following.wait()
        except TimeoutError:
            return False
        return True
