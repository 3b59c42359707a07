"""Overload: how many requests may wait for the store at once, by class as RocketMQ's two thread pools have it."""

from typing import Final

from registry.options import Options
from remoting.codes import RequestCode
from worker.answer import Answer
from worker.dispatch import BUSY, UNREGISTRATIONS_FULL
from worker.route_view import GET_ROUTE

UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)


class Admission:
    """Counts requests from their arrival until their answer."""

    def __init__(self) -> None:
        self.routes = 0
        self.others = 0
        self.unregistrations = 0

    @property
    def waiting(self) -> int:
        """All of them."""
        return self.routes + self.others

    def refusal(self, code: int, options: Options) -> Answer | None:
        """What to answer at once instead of letting one more request wait; capacities below 1 count as 1."""
        if code == GET_ROUTE:
            full = self.routes >= max(options.client_request_thread_pool_queue_capacity, 1)
            return BUSY if full else None
        if self.others >= max(options.default_thread_pool_queue_capacity, 1):
            return BUSY
        if code == UNREGISTER and self.unregistrations >= max(options.un_register_broker_queue_capacity, 1):
            return UNREGISTRATIONS_FULL
        return None

    def enter(self, code: int, by: int = 1) -> None:
        """A request begins to wait."""
        if code == GET_ROUTE:
            self.routes += by
            return
        self.others += by
        if code == UNREGISTER:
            self.unregistrations += by

    def leave(self, code: int) -> None:
        """It is answered."""
        self.enter(code, -1)
