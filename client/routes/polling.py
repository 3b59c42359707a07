"""Asking for routes, and telling whoever wants to know that one has changed."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from client.errors import AnswerError, RemotingError
from client.name_server.calls import get_route
from client.routes.book import Known, RouteBook
from client.routes.names import AUTO_CREATE_TOPIC, RETRY_PREFIX
from client.routes.publish import DEFAULT_QUEUES, default_route
from client.timing import side_by_side
from client.wire.remoting_client import AsyncRemotingClient
from remoting.route import TopicRouteData

log = logging.getLogger(__name__)

OnChange = Callable[[str, Known], None]
"""Called with a topic and what is known of it now, in the event loop."""
AT_ONCE: Final = 16
"""Lookups under way; they share one connection."""


class RoutePolling:
    """Keeps a book of routes true: `topics` says for which topics."""

    def __init__(
        self,
        remoting: AsyncRemotingClient,
        book: RouteBook,
        topics: Callable[[], Iterable[str]],
        *,
        timeout_s: float = 3.0,
    ) -> None:
        self._remoting = remoting
        self._book = book
        self._topics = topics
        self._timeout_s = timeout_s
        self._watches: dict[str, list[_Watch]] = {}

    @property
    def watched(self) -> set[str]:
        """Topics that somebody watches, which are polled like the others."""
        return set(self._watches)

    def watch(self, topic: str, on_change: OnChange) -> Callable[[], None]:
        """Have `on_change` called with the first route that is stored from now on and with each other one.

        Gives a function that ends it. What `on_change` raises is logged."""
        watch = _Watch(on_change)
        self._watches.setdefault(topic, []).append(watch)

        def end() -> None:
            watches = self._watches.get(topic, [])
            if watch in watches:
                watches.remove(watch)
            if not watches:
                self._watches.pop(topic, None)

        return end

    async def poll(self) -> None:
        """Refresh all topics."""
        await self.refresh(self.watched.union(self._topics()))

    async def refresh(self, topics: Iterable[str]) -> None:
        """Ask for the routes of these; where no route is answered the old one is kept, and the reason logged."""
        await side_by_side(self._refresh_one, sorted(set(topics)), AT_ONCE)

    async def fetch(self, topic: str) -> bool:
        """Ask for the route of one topic and store it; False where there is no such topic.

        RemotingError without an answer, AnswerError for one that is neither."""
        route = await self._remoting.ask(None, get_route(topic), timeout_s=self._timeout_s)
        if route is not None:
            self._store(topic, route)
        return route is not None

    async def fetch_default(self, topic: str, queues: int = DEFAULT_QUEUES) -> bool:
        """Have the topic that all automatically made topics are modelled on serve as the route of one that is not
        there yet; False where no broker makes topics. Errors as for fetch."""
        route = await self._remoting.ask(None, get_route(AUTO_CREATE_TOPIC), timeout_s=self._timeout_s)
        if route is not None:
            self._store(topic, default_route(route, queues))
        return route is not None

    async def _refresh_one(self, topic: str) -> None:
        try:
            if not await self.fetch(topic) and not topic.startswith(RETRY_PREFIX):
                log.warning("no route of topic %s", topic)
        except (RemotingError, AnswerError) as error:
            log.warning("the route of topic %s stays as it was: %s", topic, error)

    def _store(self, topic: str, route: TopicRouteData) -> None:
        if self._book.put(topic, route):
            log.info("the route of topic %s has changed", topic)
        known = self._book.known(topic)
        if known is None:
            return
        for watch in list(self._watches.get(topic, ())):
            watch.tell(topic, known)


class _Watch:
    """One watcher of a topic, and what it was told last."""

    def __init__(self, on_change: OnChange) -> None:
        self._on_change = on_change
        self._told: Known | None = None

    def tell(self, topic: str, known: Known) -> None:
        if known is self._told:
            return
        self._told = known
        try:
            self._on_change(topic, known)
        except Exception:  # it is not ours, and polling goes on
            log.exception("telling of a change of topic %s failed", topic)
