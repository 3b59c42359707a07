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
from worker.shares import SHARED_FROM, Shares
from worker.views import GET_ROUTE

UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)
REWRITES: Final = frozenset(
    {
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
    }
)
"""Operators' changes of topics, which may wait in line (`registry.rewrite.Rewrites`)."""
ROUTES: Final = "clientRequestThreadPoolQueueCapacity"
OTHERS: Final = "defaultThreadPoolQueueCapacity"
UNREGISTRATIONS: Final = "unRegisterBrokerQueueCapacity"

logger = logging.getLogger(__name__)
log = RateLimitedLog(logger)


class Admission:
    """Counts requests from their arrival until their reply.

    The capacities are those of the start, as Java's queues have them: any peer may send request 318."""

    def __init__(self, known_hosts: KnownHosts, options: Options) -> None:
        of_routes = options.client_request_thread_pool_queue_capacity
        of_others = options.default_thread_pool_queue_capacity
        self.routes = Shares(known_hosts, of_routes)
        self.lists = Shares(known_hosts, of_others)
        self.rewrites = Shares(known_hosts, of_others)
        self.others = Shares(known_hosts, of_others)
        self.unregistrations = 0
        self._unregistrations_max = max(options.un_register_broker_queue_capacity, 1)
        self._idle: asyncio.Future[None] | None = None
        for option, shares in ((ROUTES, self.routes), (OTHERS, self.others)):
            if shares.capacity < SHARED_FROM:
                logger.warning(
                    "%s=%d: of fewer than %d requests that may wait, one peer can have all; set it higher",
                    option,
                    shares.capacity,
                    SHARED_FROM,
                )

    @property
    def waiting(self) -> int:
        """Return how many requests are under way."""
        return self.routes.total + self.lists.total + self.rewrites.total + self.others.total

    def refusal(self, code: int, peer: Peer) -> Reply | None:
        """Return what to reply at once instead of admitting one more, or None."""
        if code == GET_ROUTE:
            return _full(self.routes, ROUTES, "lookups", peer)
        if code in LISTS:  # by themselves: however many wait, registrations do not wait behind them
            return _full(self.lists, OTHERS, "lists", peer)
        if code in REWRITES:  # likewise
            return _full(self.rewrites, OTHERS, "changes of topics", peer)
        if (busy := _full(self.others, OTHERS, "other requests", peer)) is not None:
            return busy
        if code == UNREGISTER and self.unregistrations >= self._unregistrations_max:
            _log_full("unregistrations", peer, UNREGISTRATIONS, self._unregistrations_max)
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
        if code in LISTS:
            return self.lists
        return self.rewrites if code in REWRITES else self.others


def _full(shares: Shares, option: str, kind: str, peer: Peer) -> Reply | None:
    """Return the refusal of one more request of a class, or None."""
    if shares.total < shares.calm:
        return None
    if shares.total >= shares.capacity:
        _log_full(kind, peer, option, shares.capacity)
        return BUSY
    if share := shares.exceeded(peer):
        log.warning(
            "requests of %s refused: %d %s wait, of %s=%d, and one more is over %s; find out what asks so much",
            peer.address,
            shares.total,
            kind,
            option,
            shares.capacity,
            share,
        )
        return replace(BUSY, remark=f"{BUSY.remark}: {share}")
    return None


def _log_full(kind: str, peer: Peer, option: str, capacity: int) -> None:
    log.warning(
        "requests of %s refused: as many %s wait as %s=%d allows; find out what asks so much, or if the store is slow",
        peer.address,
        kind,
        option,
        capacity,
    )
