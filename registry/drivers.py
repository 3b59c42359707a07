"""Runs plans: over `redis.Redis` for HTTP and jobs, over `redis.asyncio.Redis` for the wire.

The asynchronous driver sends what one tick of the event loop asks for as one pipeline.
"""

import asyncio
import time
from typing import Any, TypeVar

import redis
import redis.asyncio
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from registry.errors import StoreUnavailable
from registry.plans import Batch, Call, Pause, Plan, ScriptCall
from registry.scripts import script

T = TypeVar("T")
UNAVAILABLE = (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    OSError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,
    TryAgainError,
)
PIPELINES = 4  # under way at once, each on a connection of its own
UNAVAILABLE_REPLIES = ("BUSY ", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "LOADING")


def unavailable(error: BaseException) -> bool:
    """Whether the store could not serve, as opposed to refusing a request that is wrong."""
    return isinstance(error, UNAVAILABLE) or (
        isinstance(error, ResponseError) and str(error).startswith(UNAVAILABLE_REPLIES)
    )


def _command(request: Call | ScriptCall, *, whole: bool = False) -> tuple[Any, ...]:
    if isinstance(request, Call):
        return request.args
    lua = script(request.name)
    head = ("EVAL", lua.source) if whole else ("EVALSHA", lua.sha)
    return (*head, len(request.keys), *request.keys, *request.args)


def _raised(error: BaseException) -> BaseException:
    return StoreUnavailable(f"the store cannot serve: {error}") if unavailable(error) else error


def run(plan: Plan[T], store: redis.Redis) -> T:
    """Run a plan to its end. Raises what the plan raises; StoreUnavailable when Redis cannot serve."""
    try:
        request = next(plan)
        while True:
            try:
                reply = _perform(request, store)
            except RedisError as error:
                request = plan.throw(_raised(error))
            else:
                request = plan.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _perform(request: Call | ScriptCall | Batch | Pause, store: redis.Redis) -> object:
    if isinstance(request, Pause):
        time.sleep(request.seconds)
        return None
    requests = request.requests if isinstance(request, Batch) else (request,)
    pipe = store.pipeline(transaction=False)
    for one in requests:
        pipe.execute_command(*_command(one))  # type: ignore[no-untyped-call]
    replies = pipe.execute(raise_on_error=False)
    for i, reply in enumerate(replies):
        if isinstance(reply, NoScriptError):
            whole = _command(requests[i], whole=True)
            replies[i] = store.execute_command(*whole)  # type: ignore[no-untyped-call]
        elif isinstance(reply, Exception):
            raise reply
    return replies if isinstance(request, Batch) else replies[0]


class AsyncDriver:
    """Runs plans on the running event loop, what they ask in one tick in one pipeline.

    `waiting` is how many requests are without their reply: what overload is measured by."""

    def __init__(self, store: redis.asyncio.Redis) -> None:
        self._store = store
        self._queue: list[tuple[Call | ScriptCall, asyncio.Future[Any]]] = []
        self._flushes: set[asyncio.Task[None]] = set()
        self.waiting = 0

    async def run(self, plan: Plan[T]) -> T:
        """As `registry.drivers.run`."""
        try:
            request = next(plan)
            while True:
                try:
                    reply = await self._perform(request)
                except (RedisError, OSError) as error:
                    request = plan.throw(_raised(error))
                else:
                    request = plan.send(reply)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Wait for what is under way, then let go of the connections."""
        while self._queue or self._flushes:
            await asyncio.gather(*self._flushes, return_exceptions=True)
            await asyncio.sleep(0)
        await self._store.aclose()

    async def _perform(self, request: Call | ScriptCall | Batch | Pause) -> object:
        if isinstance(request, Pause):
            await asyncio.sleep(request.seconds)
            return None
        if isinstance(request, Batch):
            return await asyncio.gather(*(self._submit(one) for one in request.requests))
        return await self._submit(request)

    def _submit(self, request: Call | ScriptCall) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if not self._queue:
            loop.call_soon(self._flush)
        self._queue.append((request, future))
        self.waiting += 1
        return future

    def _flush(self) -> None:
        """Send the queue; while enough pipelines are under way it goes on growing and becomes the next one."""
        if not self._queue or len(self._flushes) >= PIPELINES:
            return
        batch, self._queue = self._queue, []
        task = asyncio.get_running_loop().create_task(self._send(batch))
        self._flushes.add(task)
        task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._flushes.discard(task)
        self._flush()

    async def _send(self, batch: list[tuple[Call | ScriptCall, asyncio.Future[Any]]]) -> None:
        try:
            pipe = self._store.pipeline(transaction=False)
            for request, _ in batch:
                pipe.execute_command(*_command(request))
            replies = await pipe.execute(raise_on_error=False)
            for (request, future), reply in zip(batch, replies, strict=True):
                if isinstance(reply, NoScriptError):
                    reply = await self._whole(request)
                _resolve(future, reply)
        except (RedisError, OSError) as error:
            for _, future in batch:
                _resolve(future, error)
        finally:
            self.waiting -= len(batch)
            for _, future in batch:
                _resolve(future, StoreUnavailable("the request was given up"))

    async def _whole(self, request: Call | ScriptCall) -> object:
        try:
            whole = _command(request, whole=True)
            return await self._store.execute_command(*whole)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            return error


def _resolve(future: asyncio.Future[Any], reply: object) -> None:
    if future.done():
        return
    if isinstance(reply, Exception):
        future.set_exception(reply)
    else:
        future.set_result(reply)
