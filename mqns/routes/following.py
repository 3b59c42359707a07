"""Routes that are refreshed when a change of them is recorded, where a redis-namesrv sends changes."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from mqns.errors import ClientError
from mqns.routes.poller import RoutePoller
from mqns.routes.table import TopicRouteTable

if TYPE_CHECKING:
    from mqns.changes.messages import ChangeMessage
    from mqns.changes.stream import ChangeStream

__all__ = ["RouteFollower"]

log = logging.getLogger(__name__)

SEEN_S: Final = 1.0
"""By when all workers show a change: the one that is asked may be behind the one that sends it."""


class RouteFollower:
    """Has the poller refresh the routes that changes concern, of those that it polls (`topics`)."""

    def __init__(
        self, poller: RoutePoller, routes: TopicRouteTable, topics: Callable[[], Iterable[str]]
    ) -> None:
        self._poller = poller
        self._routes = routes
        self._topics = topics
        self._due: set[str] = set()
        self._is_due = asyncio.Event()

    async def follow(self, stream: "ChangeStream") -> None:
        """Follow a stream until cancelled, or until the server refuses it, which is logged: polling goes on."""
        async with asyncio.TaskGroup() as group:
            refreshing = group.create_task(self._refresh())
            try:
                async for message in stream.messages():
                    self._take(message)
            except ClientError as error:
                log.warning(
                    "changes of routes are not sent: %s; they are polled all the same, a token may be missing",
                    error,
                )
            refreshing.cancel()

    def _take(self, message: "ChangeMessage") -> None:
        due = {topic for topic in self._topics() if message.may_concern({topic}, self._brokers_of(topic))}
        if due:
            self._make_due(due)
            asyncio.get_running_loop().call_later(SEEN_S, self._make_due, due)

    def _brokers_of(self, topic: str) -> set[str]:
        cached = self._routes.cached_route(topic)
        return set() if cached is None else {broker.broker_name for broker in cached.route.broker_datas}

    def _make_due(self, topics: set[str]) -> None:
        self._due |= topics
        self._is_due.set()

    async def _refresh(self) -> None:
        """Refresh together what became due meanwhile, until cancelled."""
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            due, self._due = self._due, set()
            await self._poller.refresh(due)
