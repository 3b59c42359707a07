"""Overload: how many requests may wait for the store at once, by class as RocketMQ's two thread pools have it."""

import asyncio
from typing import Final

from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from worker.dispatch import BUSY, UNREGISTRATIONS_FULL
from worker.reply import Reply
from worker.views import GET_ROUTE

UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)


class Admission:
    """Counts requests from their arrival until their reply."""

    def __init__(self) -> None:
        self.routes = 0
        self.others = 0
        self.unregistrations = 0
        self._idle: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> int:
        """Return how many requests are under way."""
        return self.routes + self.others

    def refusal(self, code: int, options: Options) -> Reply | None:
        """Return what to reply at once instead of admitting one more, or None; capacities below 1 count as 1."""
        if code == GET_ROUTE:
            full = self.routes >= max(options.client_request_thread_pool_queue_capacity, 1)
            return BUSY if full else None
        if self.others >= max(options.default_thread_pool_queue_capacity, 1):
            return BUSY
        if code == UNREGISTER and self.unregistrations >= max(options.un_register_broker_queue_capacity, 1):
            return UNREGISTRATIONS_FULL
        return None

    def acquire(self, code: int) -> None:
        """Admit a request; `release` must follow."""
        self._count(code, 1)

    def release(self, code: int) -> None:
        """Count a request as answered."""
        self._count(code, -1)
        if self._idle is not None and not self.waiting and not self._idle.done():
            self._idle.set_result(None)

    async def idle(self, timeout_s: float) -> None:
        """Wait until no request is under way, or the time is over."""
        if self.waiting:
            self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._idle,), timeout=timeout_s)

    def _count(self, code: int, by: int) -> None:
        if code == GET_ROUTE:
            self.routes += by
            return
        self.others += by
        if code == UNREGISTER:
            self.unregistrations += by
