"""Sync clients on top of async ones: an event loop in a thread, and methods that serve both."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from mqns.errors import ConnectionClosed
from mqns.remoting.call import Call

P = ParamSpec("P")
T = TypeVar("T")


class EventLoopThread:
    """An event loop in a thread of its own, from construction to `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run_loop, name="rocketmq-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine; to be called in any other thread. Ctrl-C in the caller cancels it.

        ConnectionClosed if the loop is closed, before or meanwhile."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call within its own event loop would wait for ever")
        future = self.submit(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise ConnectionClosed("", "this client is closed") from None
        finally:
            future.cancel()  # has an effect only if the wait was interrupted

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine and return the future of its result. ConnectionClosed if the loop is closed."""
        with self._lock:  # so that the loop runs every submitted coroutine before it stops
            if self._closed or not self._thread.is_alive():  # not alive: in a forked child
                coroutine.close()
                raise ConnectionClosed("", "this client is closed")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Cancel all tasks and end the thread; a second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()


class AsyncClosable(Protocol):
    """An async client, for a SyncClient to wrap."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=AsyncClosable)


class SyncClient(Generic[C]):
    """Base of sync clients: runs `_async_client` in a thread of its own; usable from several threads until closed."""

    def __init__(self, async_client: C) -> None:
        self._async_client = async_client
        self._loop = EventLoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the async client and end the thread; a second call does nothing."""
        if not self._loop.closed:
            try:
                self._loop.run(self._async_client.close())
            finally:
                self._loop.close()

    def _call_in_loop(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a plain function, called in the loop's thread."""

        async def call() -> T:
            return function(*args, **kwargs)

        return self._loop.run(call())


class AsyncCaller(Protocol):
    """A client whose `call` is awaited."""

    async def call(self, call: Call[T]) -> T: ...


class SyncCaller(Protocol):
    """A client whose `call` blocks."""

    def call(self, call: Call[T], /) -> T: ...


class CallMethod(Generic[P, T]):
    """A descriptor that turns a function returning a Call into a method that makes the call.

    The method is to be awaited on an AsyncCaller, and blocks on a SyncCaller."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__
        self.__wrapped__ = make

    @overload
    def __get__(self, client: None, owner: type) -> "CallMethod[P, T]": ...

    @overload
    def __get__(self, client: AsyncCaller, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, client: SyncCaller, owner: type) -> Callable[P, T]: ...

    def __get__(self, client: AsyncCaller | SyncCaller | None, owner: type) -> object:
        if client is None:
            return self
        make = self._make

        def method(*args: P.args, **kwargs: P.kwargs) -> object:
            return client.call(make(*args, **kwargs))

        method.__doc__ = make.__doc__
        return method
