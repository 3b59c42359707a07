"""Requests that are tried a second time: a member in the way of one that takes its place may have gone."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from registry.drivers import AsyncDriver
from worker import dispatch
from worker.background import end
from worker.logs.rate_limited_log import RateLimitedLog
from worker.reply import Reply, Request
from worker.watch.contested_members import ContestedMembers, Reserved

__all__ = ["SecondTry"]

log = RateLimitedLog(logging.getLogger(__name__))
Done = Callable[[Reply], None]


class SecondTry:
    """Runs the handlers of one worker's requests."""

    def __init__(self, driver: AsyncDriver, contested: ContestedMembers) -> None:
        self._driver = driver
        self._contested = contested
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, request: Request, done: Done) -> None:
        """Run the handler of a request; `done` gets the reply, of the last try."""
        if request.claimant.guard or request.claimant.exclusive:
            done = partial(self._done, request, done)
        dispatch.begin(request, self._driver, done)

    async def stop(self) -> None:
        """End what is under way."""
        await end(self._tasks)

    def _done(self, request: Request, done: Done, reply: Reply) -> None:
        holder = reply.in_the_way
        peer = request.peer
        reserved = None if holder is None or peer.closed else self._contested.reserve(holder, peer.host)
        if reserved is None:
            done(reply)
            return
        task = asyncio.get_running_loop().create_task(self._try_again(request, done, reply, reserved))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try_again(self, request: Request, done: Done, reply: Reply, reserved: Reserved) -> None:
        """Try a request again if the member in its way has gone; none is probed again at once, so that this ends."""
        try:
            has_gone = await self._contested.remove_unless_reachable(reserved, request.origin.op)
        except Exception as error:
            log.warning(
                "broker %s, in the way of a request of %s, was not removed: %s; it leaves when its lease ends",
                reserved.holder.address,
                request.peer.address,
                error,
            )
            has_gone = False
        if has_gone:
            self.begin(request, done)
        else:
            done(reply)
