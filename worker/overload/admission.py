"""Overload: how many requests may wait for the store at once, by class as RocketMQ's two thread pools have it."""

import asyncio
import logging
from typing import Final

from msgspec.structs import replace

from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from worker.cache.lists import LISTS
from worker.cache.views import GET_ROUTE
from worker.dispatch import BUSY, UNREGISTRATIONS_FULL
from worker.logs.rate_limited_log import RateLimitedLog
from worker.overload.known_hosts import KnownHosts
from worker.overload.shares import SHARED_FROM, Shares
from worker.peer import Peer
from worker.reply import Reply

UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)
REWRITES: Final = frozenset(
    {
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
    }
)
"""Operators' changes of topics, which may wait in line (`registry.queue_data.rewrite.Rewrites`)."""
ROUTES: Final = "clientRequestThreadPoolQueueCapacity"
OTHERS: Final = "defaultThreadPoolQueueCapacity"
UNREGISTRATIONS: Final = "unRegisterBrokerQueueCapacity"
IDLE_LOOK_S: Final = 0.01  # between two looks whether the last request of a worker that ends is answered

logger = logging.getLogger(__name__)
log = RateLimitedLog(logger)


class RequestClass(Shares):
    """Requests that wait for one queue of RocketMQ's; `option` is its capacity, `kind` what the log calls them, `label`
    what metrics do."""

    def __init__(self, kind: str, label: str, known_hosts: KnownHosts, option: str, capacity: int) -> None:
        super().__init__(known_hosts, capacity)
        self._kind = kind
        self.label = label
        self._option = option
        self._busy = replace(BUSY, refusal=option)

    def admit(self, peer: Peer) -> Reply | None:
        """Admit one more, for which `give_back` must follow, or return what to reply at once instead."""
        if self.total < self.calm:
            self.total += 1
            return None
        refusal = self._refusal(peer)
        if refusal is None:
            self.take(peer)
        return refusal

    def _refusal(self, peer: Peer) -> Reply | None:
        if self.total >= self.capacity:
            _log_full(self._kind, peer, self._option, self.capacity)
            return self._busy
        if share := self.exceeded(peer):
            log.warning(
                "requests of %s refused: %d %s wait, of %s=%d, and one more is over %s; find out what asks so much",
                peer.address,
                self.total,
                self._kind,
                self._option,
                self.capacity,
                share,
            )
            return replace(self._busy, remark=f"{BUSY.remark}: {share}")
        return None


class Admission:
    """Counts requests from their arrival until their reply.

    Lists and operators' changes of topics are classes by themselves: however many wait, registrations do not wait
    behind them. The capacities are those of the start, as Java's queues have them: any peer may send request 318."""

    def __init__(self, known_hosts: KnownHosts, options: Options) -> None:
        of_routes = ROUTES, options.client_request_thread_pool_queue_capacity
        of_others = OTHERS, options.default_thread_pool_queue_capacity
        self.routes = RequestClass("lookups", "route", known_hosts, *of_routes)
        self.lists = RequestClass("lists", "admin", known_hosts, *of_others)
        self.rewrites = RequestClass("changes of topics", "admin", known_hosts, *of_others)
        self.others = RequestClass("other requests", "broker", known_hosts, *of_others)
        self._classes: dict[int, RequestClass] = {
            GET_ROUTE: self.routes,
            **dict.fromkeys(LISTS, self.lists),
            **dict.fromkeys(REWRITES, self.rewrites),
        }
        self.unregistrations = 0
        self._unregistrations_max = max(options.un_register_broker_queue_capacity, 1)
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

    def class_of(self, code: int) -> RequestClass:
        """Return the class of the requests with this code."""
        return self._classes.get(code, self.others)

    def admit(self, code: int, peer: Peer) -> Reply | None:
        """Admit a request, for which `release` must follow, or return what to reply at once instead."""
        busy = self._classes.get(code, self.others).admit(peer)
        if busy is not None or code != UNREGISTER:
            return busy
        if self.unregistrations >= self._unregistrations_max:
            self.class_of(code).give_back(peer)
            _log_full("unregistrations", peer, UNREGISTRATIONS, self._unregistrations_max)
            return replace(UNREGISTRATIONS_FULL, refusal=UNREGISTRATIONS)
        self.unregistrations += 1
        return None

    def release(self, code: int, peer: Peer) -> None:
        """Count a request as answered."""
        self._classes.get(code, self.others).give_back(peer)
        if code == UNREGISTER:
            self.unregistrations -= 1

    async def idle(self, timeout_s: float) -> None:
        """Wait until no request is under way, or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self.waiting and loop.time() < until:
            await asyncio.sleep(IDLE_LOOK_S)


def _log_full(kind: str, peer: Peer, option: str, capacity: int) -> None:
    log.warning(
        "requests of %s refused: as many %s wait as %s=%d allows; find out what asks so much, or if the store is slow",
        peer.address,
        kind,
        option,
        capacity,
    )
