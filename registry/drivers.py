"""Runs plans: over `redis.Redis` for HTTP and jobs, over `redis.asyncio.Redis` for the wire.

The asynchronous driver sends what one tick of the event loop asks for as one pipeline.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Generic, TypeVar

import redis
import redis.asyncio
from redis.exceptions import (
    AskError,
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

from registry.errors import StoreUnavailable, cause_of
from registry.keys import guard_of
from registry.plans import (
    Acquire,
    Batch,
    Call,
    Pause,
    Plan,
    Request,
    ScriptCall,
    ScriptItem,
    joined,
    replies_to,
)
from registry.scripts import dry_script, script
from registry.store.pipeline import execute
from registry.store.slot_master import AsyncSlotMaster, SlotMaster

T = TypeVar("T")
Observe = Callable[[Sequence[Call | ScriptCall], float, Sequence[object]], None]
"""Is called after a round trip with its requests, the seconds that it took, and a reply or error for each."""
Sink = Callable[[object], None]
Asked = tuple[Call | ScriptCall | ScriptItem, Sink]
Groups = dict[tuple[str, tuple[str, ...], int | None], list[Asked]]
"""Items that one call may have: of one script, with the same shared keys and the same most."""
Done = Callable[[T | None, Exception | None], None]
log = logging.getLogger(__name__)
UNAVAILABLE = (
    AskError,
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
PIPELINES = 3  # under way at once at most, each on a connection of its own
PATIENCE_S = 0.005  # that one waits behind another: fuller ones cost less, a far store takes longer
PIPELINE_MOST = 512  # requests in one, so that taking its replies does not hold the loop for long
JOINED_MOST = 128  # items of one call, so that it stays well below a millisecond
UNAVAILABLE_REPLIES = ("BUSY ", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "LOADING")


def unavailable(error: BaseException) -> bool:
    """Return whether the store could not serve, as opposed to refusing a request that is wrong."""
    return isinstance(error, UNAVAILABLE) or (
        isinstance(error, ResponseError) and str(error).startswith(UNAVAILABLE_REPLIES)
    )


def _command(request: Call | ScriptCall, *, whole: bool = False, guarded: bool = False) -> tuple[Any, ...]:
    if isinstance(request, Call):
        return request.args
    lua = dry_script(request.name) if request.dry else script(request.name)
    head = ("EVAL", lua.source) if whole else ("EVALSHA", lua.sha)
    keys = (*request.keys, guard_of(request.keys[0])) if guarded else request.keys
    number = str(len(keys))  # packing takes longer where one argument is no text
    return (*head, number, *keys, *request.args)


def _guarded(store: redis.Redis | redis.asyncio.Redis) -> bool:
    """Return whether a script's keys may be with two servers while their slot moves."""
    return isinstance(getattr(store.connection_pool, "sentinel_manager", None), SlotMaster | AsyncSlotMaster)


def raised(error: Exception) -> Exception:
    """Return the error that a plan gets for one of redis-py's."""
    return StoreUnavailable(f"the store cannot serve: {cause_of(error)}") if unavailable(error) else error


def _observe_nothing(*_: object) -> None:
    """Be no observer."""


def run(plan: Plan[T], store: redis.Redis, observe: Observe = _observe_nothing) -> T:
    """Run a plan to its end. Raises what the plan raises; StoreUnavailable when Redis cannot serve."""
    try:
        request = next(plan)
        while True:
            try:
                reply = _perform(request, store, observe)
            except RedisError as error:
                request = plan.throw(raised(error))
            else:
                request = plan.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _perform(request: Request, store: redis.Redis, observe: Observe) -> object:
    if isinstance(request, Pause):
        time.sleep(request.seconds)
        return None
    if isinstance(request, Acquire):
        acquired = threading.Event()
        request.limiter.acquire(acquired.set)
        acquired.wait()
        return None
    if isinstance(request, ScriptItem):
        return replies_to((request,), _perform(joined((request,)), store, observe))[0]
    requests = request.requests if isinstance(request, Batch) else (request,)
    guarded = _guarded(store)
    pipe = store.pipeline(transaction=False)
    for call in requests:
        pipe.execute_command(*_command(call, guarded=guarded))  # type: ignore[no-untyped-call]
    began = perf_counter()
    try:
        replies = pipe.execute(raise_on_error=False)
    except (RedisError, OSError) as error:
        observe(requests, perf_counter() - began, [error] * len(requests))
        raise
    observe(requests, perf_counter() - began, replies)
    for i, reply in enumerate(replies):
        if isinstance(reply, NoScriptError):
            whole = _command(requests[i], whole=True, guarded=guarded)
            replies[i] = store.execute_command(*whole)  # type: ignore[no-untyped-call]
        elif isinstance(reply, Exception):
            raise reply
    return replies if isinstance(request, Batch) else replies[0]


class AsyncDriver:
    """Runs plans on the running event loop, what they ask in one tick in one pipeline, items of a script in one call.

    `waiting` is how many requests are without their reply: what overload is measured by."""

    def __init__(self, store: redis.asyncio.Redis, observe: Observe = _observe_nothing) -> None:
        self._store = store
        self._observe = observe
        self._guarded = _guarded(store)
        self._queue: list[Asked] = []
        self._flushes: set[asyncio.Task[None]] = set()
        self.waiting = 0

    async def open(self) -> None:
        """Make the connections that many requests will need, if the store is there; making one takes long."""
        ping = ("PING",)
        await asyncio.gather(
            *(execute(self._store, (ping,)) for _ in range(PIPELINES)), return_exceptions=True
        )

    def start(self, plan: Plan[T], done: Done[T]) -> None:
        """Run a plan; `done` gets its result or what it raised, before this returns if it needs no store."""
        _Run(self, plan, done).resume(None)

    async def run(self, plan: Plan[T]) -> T:
        """As `registry.drivers.run`; a plan goes on to its end even if its caller was cancelled."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: T | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

        self.start(plan, done)
        return await future

    async def close(self) -> None:
        """Wait for what is under way, then close the connections."""
        while self._queue or self._flushes:
            await asyncio.gather(*self._flushes, return_exceptions=True)
            await asyncio.sleep(0)
        await self._store.aclose()

    def ask(self, request: Request, sink: Sink) -> None:
        """Have a request performed; `sink` gets its reply, or the error in its place."""
        if isinstance(request, (ScriptItem, ScriptCall, Call)):
            if not self._queue:
                asyncio.get_running_loop().call_soon(self._flush)
            self._queue.append((request, sink))
            self.waiting += 1
        elif isinstance(request, Pause):
            asyncio.get_running_loop().call_later(request.seconds, sink, None)
        elif isinstance(request, Acquire):
            request.limiter.acquire(partial(asyncio.get_running_loop().call_soon, sink, None))
        else:
            together = _Together(len(request.requests), sink)
            for i, one in enumerate(request.requests):
                self.ask(one, partial(together.take, i))

    def _flush(self) -> None:
        """Send the queue; behind another pipeline it goes on growing for a moment, unless it is long."""
        if self._flushes and len(self._queue) < PIPELINE_MOST:
            asyncio.get_running_loop().call_later(PATIENCE_S, self._send_queue)
        else:
            self._send_queue()

    def _send_queue(self) -> None:
        """Send the queue; while enough pipelines are under way it goes on growing and becomes the next one."""
        while self._queue and len(self._flushes) < PIPELINES:
            batch, self._queue = self._queue[:PIPELINE_MOST], self._queue[PIPELINE_MOST:]
            task = asyncio.get_running_loop().create_task(self._send(batch))
            self._flushes.add(task)
            task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._flushes.discard(task)
        if task.cancelled():
            self._queue.clear()  # the loop ends: callers are cancelled too, and no other pipeline would be run
        self._send_queue()

    async def _send(self, batch: list[Asked]) -> None:
        calls = [*_calls(batch)]
        began = perf_counter()
        try:
            commands = [_command(request, guarded=self._guarded) for request, _ in calls]
            replies = await execute(self._store, commands)
            for i, reply in enumerate(replies):
                if isinstance(reply, NoScriptError):
                    replies[i] = await self._whole(calls[i][0])
        except (RedisError, OSError) as error:
            replies = [error] * len(calls)
        except Exception as error:  # else these requests would have no answer at all
            log.exception("requests to the store met a fault of this server, and get an error; report it")
            replies = [ResponseError(f"a request or reply of the store cannot be handled: {error}")] * len(
                calls
            )
        self._observe([request for request, _ in calls], perf_counter() - began, replies)
        for (_, asked), reply in zip(calls, replies, strict=True):
            self.waiting -= len(asked)
            self._deliver(asked, reply)

    def _deliver(self, asked: Sequence[Asked], reply: Any) -> None:
        first = asked[0][0]
        if not isinstance(first, ScriptItem):
            _pass(asked[0][1], reply)
        elif not isinstance(reply, Exception):
            items: list[Any] = [item for item, _ in asked]
            for (_, sink), own in zip(asked, replies_to(items, reply), strict=True):
                _pass(sink, own)
        elif isinstance(reply, ResponseError) and len(asked) > 1 and not unavailable(reply):
            for one, sink in asked:  # which of them is wrong shows when each is asked alone
                self.ask(joined((one,)), partial(_pass_single, one, sink))  # type: ignore[arg-type]
        else:
            for _, sink in asked:
                _pass(sink, reply)

    async def _whole(self, request: Call | ScriptCall) -> object:
        (reply,) = await execute(self._store, (_command(request, whole=True, guarded=self._guarded),))
        return reply


class _Run(Generic[T]):
    """A plan under way."""

    __slots__ = ("_done", "_driver", "_plan")

    def __init__(self, driver: AsyncDriver, plan: Plan[T], done: Done[T]) -> None:
        self._driver = driver
        self._plan = plan
        self._done = done

    def resume(self, reply: object) -> None:
        """Go on with a reply until the plan asks again or ends; an error is thrown into it."""
        try:
            plan = self._plan
            request = plan.throw(raised(reply)) if isinstance(reply, Exception) else plan.send(reply)
        except StopIteration as end:
            self._done(end.value, None)
        except Exception as error:
            self._done(None, error)
        else:
            self._driver.ask(request, self.resume)


class _Together:
    """The replies of a batch; the first error stands for all."""

    __slots__ = ("_left", "_replies", "_sink")

    def __init__(self, count: int, sink: Sink) -> None:
        self._replies: list[object] = [None] * count
        self._left = count
        self._sink = sink
        if not count:
            sink(self._replies)

    def take(self, i: int, reply: object) -> None:
        self._replies[i] = reply
        self._left -= 1
        if not self._left:
            errors = [reply for reply in self._replies if isinstance(reply, Exception)]
            self._sink(errors[0] if errors else self._replies)


def _calls(batch: Sequence[Asked]) -> Iterator[tuple[Call | ScriptCall, Sequence[Asked]]]:
    """Yield what to send for a batch, with the requests that each reply is for: items of one script are joined.

    Items come first, unless a script before them has a key of theirs: of one broker each request stays behind those
    that came before it."""
    groups: Groups = {}
    others: list[Asked] = []
    keys: set[str] = set()
    for asked in batch:
        request = asked[0]
        if isinstance(request, ScriptItem):
            if keys and not keys.isdisjoint(request.keys):
                yield from _joined_first(groups, others)
                groups, others, keys = {}, [], set()
            kind = request.name, request.shared, request.most
            group = groups.get(kind)
            if group is None:
                group = groups[kind] = []
            group.append(asked)
        else:
            others.append(asked)
            if isinstance(request, ScriptCall):
                keys.update(request.keys)
    yield from _joined_first(groups, others)


def _joined_first(
    groups: Groups, others: Sequence[Asked]
) -> Iterator[tuple[Call | ScriptCall, Sequence[Asked]]]:
    for (_, _, most), group in groups.items():
        step = most or JOINED_MOST
        for at in range(0, len(group), step):
            part = group[at : at + step]
            yield joined([item for item, _ in part]), part  # type: ignore[misc]
    for asked in others:
        yield asked[0], (asked,)  # type: ignore[misc]


def _pass(sink: Sink, reply: object) -> None:
    try:
        sink(reply)
    except Exception:
        log.exception(
            "a reply of the store met a fault of this server; its request stays unanswered, report it"
        )


def _pass_single(item: ScriptItem, sink: Sink, reply: object) -> None:
    sink(reply if isinstance(reply, Exception) else replies_to((item,), reply)[0])
