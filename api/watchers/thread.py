"""The thread of a process whose event loop has the watchers: it starts with the first one, and ends when all have gone.

Threads answer the other requests of an HTTP worker, and each of them can serve one peer; on a loop a watcher takes a
socket and some memory. It is a loop of its own, so that passes to thousands of watchers keep no request waiting."""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from threading import Lock, Thread
from typing import Any, Final, NamedTuple

import msgspec

from api.counters import COUNTERS
from api.transport.answer import Answer
from api.transport.files import watchers_within_files
from api.watchers.holders import read_holders
from api.watchers.hub import Hub
from api.watchers.outlet import Outlet
from api.watchers.watcher import Audience, Watcher
from registry.drivers import AsyncDriver
from registry.events.entry import EventId
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.store.connect import connect_async, connect_follower
from worker.background import end, forever
from worker.watch.follower import Follower

__all__ = ["WatchRequest", "Watchers"]

IDLE_S: Final = 30.0
"""For how long the stream is followed without watchers: one that was cut off comes back soon."""
JUDGE_S: Final = 1.0
STOP_S: Final = 2.0
"""How long the worker's end waits for this thread."""

log = logging.getLogger(__name__)

Admits = Callable[[Any], bool]
"""Called in a thread with the admission of a watcher: whether it may go on."""


class WatchRequest(msgspec.Struct, frozen=True):
    """What a watcher asks: `after` is the position to go on behind, None for now; a long poll waits so long for
    messages. `admission` says who asks, for those that judge it again."""

    audience: Audience
    admission: Hashable
    after: EventId | None = None
    wait_s: float = 0.0


class _Arrival(NamedTuple):
    peer: socket.socket
    answer: Answer
    request: WatchRequest
    give_back: Callable[[], None]


class Watchers:
    """Those of one process. Called from any thread; `admits` is asked about each admission once a second."""

    def __init__(self, keys: Keys, options: Options, admits: Admits) -> None:
        self._keys = keys
        self._options = options
        self._admits = admits
        self._lock = Lock()
        self._arrived: deque[_Arrival] = deque()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._number = 0

    @property
    def is_full(self) -> bool:
        """Whether there are as many as httpMaxWatchers, and the limit of open files, allow. Threads that ask at the
        same moment may each add one."""
        options = self._options
        return self._number >= watchers_within_files(options.http_max_watchers, options.http_max_connections)

    def take(
        self, peer: socket.socket, answer: Answer, request: WatchRequest, give_back: Callable[[], None]
    ) -> None:
        """Own a connection with what of its answer is unsent, until it is closed, or given back behind the answer."""
        with self._lock:
            if self._is_stopping:
                peer.close()
                return
            self._arrived.append(_Arrival(peer, answer, request, give_back))
            self._number += 1
            if self._thread is None:
                self._thread = Thread(target=self._run, name="watchers", daemon=True)
                self._thread.start()
            elif self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake)

    def stop(self) -> None:
        """End all watchers, for the worker ends: they come back to another one, spread over some seconds."""
        with self._lock:
            self._is_stopping = True
            thread = self._thread
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake)
        if thread is not None:
            thread.join(STOP_S)

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            is_well = False
            try:
                asyncio.run(self._serve())
                is_well = True
            except Exception:
                log.exception("the thread of the watchers ended by a fault of this server; report it")
            with self._lock:
                self._loop = None
                goes_on = is_well and not self._is_stopping and len(self._arrived) > 0
                if not goes_on:
                    self._thread, self._number = None, 0
                    for arrival in self._arrived:
                        arrival.peer.close()
                    self._arrived.clear()
            COUNTERS.watching({})

    async def _serve(self) -> None:
        """Serve until there were no watchers for IDLE_S, or the worker ends."""
        options, keys = self._options, self._keys
        driver = AsyncDriver(connect_async(options.redis_url, options.namespace), COUNTERS.observe)
        slow_s = options.http_answer_timeout_millis / 1000
        hub = Hub(keys, driver, self._left, held_most=options.http_held_bytes, slow_s=slow_s)
        follower = Follower(partial(connect_follower, options.redis_url, options.namespace), keys, hub.feed)
        hub.feed.listen_to(follower)
        tasks = [
            asyncio.ensure_future(forever("the event stream's follower", follower.run)),
            asyncio.ensure_future(forever("what sends to watchers", hub.run)),
            asyncio.ensure_future(
                forever(
                    "what reads the brokers of watched topics",
                    partial(read_holders, hub.holders, driver, keys),
                )
            ),
            asyncio.ensure_future(forever("what judges watchers", partial(self._judge, hub))),
            asyncio.ensure_future(hub.prepare()),
        ]
        self._woken = asyncio.Event()
        with self._lock:
            self._loop = asyncio.get_running_loop()
        try:
            await self._serve_arrivals(hub)
        finally:
            hub.end(gently=True)
            await end(tasks)
            hub.end(gently=False)
            await driver.close()

    async def _serve_arrivals(self, hub: Hub) -> None:
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        while True:
            if hub.watchers:
                idle_since = loop.time()
            with self._lock:
                if self._is_stopping or (not self._arrived and loop.time() - idle_since > IDLE_S):
                    self._loop = None
                    return
            while self._arrived:
                self._begin(hub, self._arrived.popleft())
            COUNTERS.watching(_by_transport(hub.watchers))
            self._woken.clear()
            try:
                async with asyncio.timeout(JUDGE_S):
                    await self._woken.wait()
            except TimeoutError:
                pass

    def _begin(self, hub: Hub, arrival: "_Arrival") -> None:
        request = arrival.request
        outlet = Outlet(
            arrival.peer, arrival.answer, partial(self._give_back, arrival), chunked=request.audience.chunked
        )
        until = asyncio.get_running_loop().time() + request.wait_s
        hub.begin(Watcher(request.audience, request.after, outlet, until, request.admission))

    def _give_back(self, arrival: "_Arrival") -> None:
        if self._is_stopping:  # the worker's loop may have ended
            arrival.peer.close()
        else:
            arrival.give_back()

    async def _judge(self, hub: Hub) -> None:
        """End watchers that may watch no more, such as those whose token was revoked."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(JUDGE_S)
            admissions = {watcher.admission for watcher in hub.watchers}
            for admission in admissions:
                if not await loop.run_in_executor(None, self._admits, admission):
                    for watcher in [one for one in hub.watchers if one.admission == admission]:
                        hub.finish(watcher)

    def _left(self) -> None:
        with self._lock:
            self._number -= 1

    def _wake(self) -> None:
        self._woken.set()


def _by_transport(watchers: Iterable[Watcher]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for watcher in watchers:
        name = watcher.audience.form.name
        counts[name] = counts.get(name, 0) + 1
    return counts
