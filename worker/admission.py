"""Overload: how many requests may wait for the store at once, by class as RocketMQ's two thread pools have it."""

import asyncio
import logging
from typing import Final

from msgspec.structs import replace

from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from worker.cache.lists import LISTS
from worker.dispatch import BUSY, UNREGISTRATIONS_FULL
from worker.known_hosts import KnownHosts
from worker.peer import Peer
from worker.rate_limited_log import RateLimitedLog
from worker.reply import Reply
from worker.shares import CALM, Shares
from worker.views import GET_ROUTE

UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)

log = RateLimitedLog(logging.getLogger(__name__))


class Admission:
    """Counts requests from their arrival until their reply."""

    def __init__(self, known_hosts: KnownHosts) -> None:
        self.routes = Shares(known_hosts)
        self.lists = Shares(known_hosts)
        self.others = Shares(known_hosts)
        self.unregistrations = 0
        self._idle: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> int:
        """Return how many requests are under way."""
        return self.routes.total + self.lists.total + self.others.total

    def refusal(self, code: int, peer: Peer, options: Options) -> Reply | None:
        """Return what to reply at once instead of admitting one more, or None; capacities below 1 count as 1."""
        if code == GET_ROUTE:
            return _full(self.routes, peer, options.client_request_thread_pool_queue_capacity)
        if code in LISTS:  # by themselves: however many wait, registrations do not wait behind them
            return _full(self.lists, peer, options.default_thread_pool_queue_capacity)
        if (busy := _full(self.others, peer, options.default_thread_pool_queue_capacity)) is not None:
            return busy
        if code == UNREGISTER and self.unregistrations >= max(options.un_register_broker_queue_capacity, 1):
            return UNREGISTRATIONS_FULL
        return None

    def acquire(self, code: int, peer: Peer) -> None:
        """Admit a request; `release` must follow."""
        self._class_of(code).take(peer)
        if code == UNREGISTER:
            self.unregistrations += 1

    def release(self, code: int, peer: Peer) -> None:
        """Count a request as answered."""
        self._class_of(code).give_back(peer)
        if code == UNREGISTER:
            self.unregistrations -= 1
        if self._idle is not None and not self.waiting and not self._idle.done():
            self._idle.set_result(None)

    async def idle(self, timeout_s: float) -> None:
        """Wait until no request is under way, or the time is over."""
        if self.waiting:
            self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._idle,), timeout=timeout_s)

    def _class_of(self, code: int) -> Shares:
        if code == GET_ROUTE:
            return self.routes
        return self.lists if code in LISTS else self.others


def _full(class_: Shares, peer: Peer, capacity: int) -> Reply | None:
    """Return the refusal of one more request of a class, or None."""
    capacity = max(capacity, 1)
    if class_.total >= capacity:
        return BUSY
    if class_.total < CALM:
        return None
    if share := class_.exceeded(peer, capacity):
        log.warning(
            "requests of %s refused: of %d that may wait, %d do, and one more is over %s; find out what asks so much",
            peer.address,
            capacity,
            class_.total,
            share,
        )
        return replace(BUSY, remark=f"{BUSY.remark}: {share}")
    return None
