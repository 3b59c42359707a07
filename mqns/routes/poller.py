"""Polling of routes, and callbacks for changed routes."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from mqns.errors import RemotingError, ResponseError
from mqns.name_server.calls import get_route
from mqns.names import AUTO_CREATE_TOPIC, RETRY_PREFIX
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.routes.publish import DEFAULT_QUEUES, default_route
from mqns.routes.table import CachedRoute, TopicRouteTable
from mqns.tasks import run_concurrently
from rocketmq_remoting.route import TopicRouteData

log = logging.getLogger(__name__)

OnChange = Callable[[str, CachedRoute], None]
"""Called with a topic and its new cached route, in the event loop."""
CONCURRENT_LOOKUPS: Final = 16
"""Lookups in flight at a time; they share one connection."""


class RoutePoller:
    """Refreshes the route table of the topics that `topics` returns and of those that are watched."""

    def __init__(
        self,
        remoting: AsyncRemotingClient,
        routes: TopicRouteTable,
        topics: Callable[[], Iterable[str]],
        *,
        timeout_s: float = 3.0,
    ) -> None:
        self._remoting = remoting
        self._routes = routes
        self._topics = topics
        self._timeout_s = timeout_s
        self._watches: dict[str, list[_Watcher]] = {}

    @property
    def watched(self) -> set[str]:
        """The watched topics."""
        return set(self._watches)

    def watch(self, topic: str, on_change: OnChange) -> Callable[[], None]:
        """Call `on_change` with the next stored route of a topic and with each changed one.

        Returns a function that ends it. Exceptions of `on_change` are logged."""
        watch = _Watcher(on_change)
        self._watches.setdefault(topic, []).append(watch)

        def end() -> None:
            watches = self._watches.get(topic, [])
            if watch in watches:
                watches.remove(watch)
            if not watches:
                self._watches.pop(topic, None)

        return end

    def polled(self) -> set[str]:
        """Return the topics that are polled."""
        return self.watched.union(self._topics())

    async def poll(self) -> None:
        """Refresh the routes of all topics."""
        await self.refresh(self.polled())

    async def refresh(self, topics: Iterable[str]) -> None:
        """Fetch the routes of topics; after a failure the old route stays and the reason is logged."""
        await run_concurrently(self._refresh_one, sorted(set(topics)), CONCURRENT_LOOKUPS)

    async def fetch(self, topic: str) -> bool:
        """Fetch and store the route of a topic; return False for an unknown topic.

        RemotingError without a response, ResponseError for any other response code."""
        route = await self._remoting.call(None, get_route(topic), timeout_s=self._timeout_s)
        if route is not None:
            self._store(topic, route)
        return route is not None

    async def fetch_default(self, topic: str, queues: int = DEFAULT_QUEUES) -> bool:
        """Store the route of TBW102 as that of a new topic; return False if no broker creates topics.

        Errors as for fetch."""
        route = await self._remoting.call(None, get_route(AUTO_CREATE_TOPIC), timeout_s=self._timeout_s)
        if route is not None:
            self._store(topic, default_route(route, queues))
        return route is not None

    async def _refresh_one(self, topic: str) -> None:
        try:
            if not await self.fetch(topic) and not topic.startswith(RETRY_PREFIX):
                log.warning(
                    "topic %s has no route; create it at a broker, or see whether its brokers are registered",
                    topic,
                )
        except (RemotingError, ResponseError) as error:
            log.warning("the route of topic %s is not refreshed: %s; the next poll retries", topic, error)

    def _store(self, topic: str, route: TopicRouteData) -> None:
        if self._routes.put(topic, route):
            log.info("the route of topic %s has changed", topic)
        cached_route = self._routes.cached_route(topic)
        if cached_route is None:
            return
        for watch in list(self._watches.get(topic, ())):
            watch.notify(topic, cached_route)


class _Watcher:
    """A callback for a topic, and the route it was called with last."""

    def __init__(self, on_change: OnChange) -> None:
        self._on_change = on_change
        self._last: CachedRoute | None = None

    def notify(self, topic: str, cached_route: CachedRoute) -> None:
        if cached_route is self._last:
            return
        self._last = cached_route
        try:
            self._on_change(topic, cached_route)
        except Exception:  # an error of the callback must not end polling
            log.exception(
                "the callback for the changed route of topic %s failed; the next change of the route calls it again",
                topic,
            )
