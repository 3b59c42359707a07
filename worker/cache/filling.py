"""Fills: lookups that are not cached are answered from the store, once for all requests that wait for the same reply.

A fill reads the store (105 with `worker.cache.reader`, 106 by its plan), has the handler make the reply, completes it
with brokers from before a loss or a topic of the product cluster, keeps it, and sends it to all that wait.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial

from msgspec.structs import replace

from registry.drivers import raised
from registry.routes import RoutesRead
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command
from worker import dispatch
from worker.arguments import shown
from worker.assembly import Assembly
from worker.cache.reader import RouteReader
from worker.cache.routes import Fill
from worker.cache.views import Key
from worker.cluster_test import ProductCluster
from worker.handlers.routes import get_route_info_by_topic
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import Peer
from worker.reply import Reply
from worker.watch.stream_connection import RECONNECT_S

Answered = Callable[[Reply, Command, Peer], None]


log = RateLimitedLog(logging.getLogger(__name__))


class Filling:
    """The fills of one worker; `answered` gets each request with its reply."""

    def __init__(self, parts: Assembly, answered: Answered) -> None:
        self._parts = parts
        self._routes = parts.routes
        self._answered = answered
        self._reader = RouteReader(parts.driver, parts.keys, self._read)
        options = parts.options
        self._product = ProductCluster(options.namesrv_product_addr) if options.cluster_test else None
        self.tasks: set[asyncio.Task[None]] = set()

    def answer(self, key: Key, command: Command, peer: Peer) -> None:
        """Answer a lookup whose reply may be kept under `key`."""
        fill = self._routes.fill_under_way(key)
        if fill is not None:
            fill.waiting.append((command, peer))
            return
        fill = self._routes.begin(key)
        fill.waiting.append((command, peer))
        if self._parts.follower.connected:
            self._ask(fill)
        else:
            self._run(self._ask_when_followed(fill))

    async def _ask_when_followed(self, fill: Fill) -> None:
        """Ask the store once it is followed again: it may have come back empty, which the follower finds out."""
        await self._parts.follower.following(RECONNECT_S)
        self._ask(fill)

    def _ask(self, fill: Fill) -> None:
        fill.awaited = self._parts.before_loss.awaited
        if fill.key[1] is None:
            request = self._parts.request(*fill.waiting[0])
            dispatch.begin(request, self._parts.driver, partial(self._complete, fill))
        else:
            self._reader.ask(fill)

    def _read(self, fill: Fill, read: RoutesRead | Exception, at: int) -> None:
        topic, asked = fill.key
        assert asked is not None
        try:
            if isinstance(read, Exception):
                raise raised(read)
            reply = get_route_info_by_topic(read.route(topic, at), asked, self._parts.options)
        except Exception as error:
            reply = dispatch.failed(self._parts.request(*fill.waiting[0]), error)
        self._complete(fill, reply)

    def _complete(self, fill: Fill, reply: Reply) -> None:
        try:
            reply = self._parts.before_loss.complete(fill.key, reply, fill.awaited)
        except Exception as error:  # a fill without an end would be waited for by all later lookups, too
            log.warning(
                "the route of topic %s is answered without brokers from before the loss, since one cannot be read: %s; "
                "they are back within 30 s",
                shown(fill.key[0]),
                error,
            )
        if self._product is not None and reply.code == ResponseCode.TOPIC_NOT_EXIST:
            self._run(self._ask_product_cluster(self._product, fill, reply))
        else:
            self._end(fill, reply)

    async def _ask_product_cluster(self, product: ProductCluster, fill: Fill, missing: Reply) -> None:
        """Answer with the product cluster's route, if it has one."""
        reply = dispatch.failure("the server stops")
        try:
            reply = await product.instead(missing, fill.waiting[0][0], self._parts.options)
        finally:
            self._end(fill, reply)

    def _end(self, fill: Fill, reply: Reply) -> None:
        followed = self._parts.follower.connected
        self._routes.end(fill, reply if followed else replace(reply, depends=None))
        for command, peer in fill.waiting:
            self._answered(reply, command, peer)

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
