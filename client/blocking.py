"""Blocking faces of asynchronous things: an event loop in a thread, and methods that are both."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from client.errors import ConnectionClosed
from client.wire.call import Call

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """An event loop that runs in a thread of its own until `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="rocketmq-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Its result, from any other thread. An interrupt of the caller (Ctrl-C) cancels it.

        ConnectionClosed when the loop is closed, before or meanwhile."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call within its own event loop would wait for ever")
        future = self.begin(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise ConnectionClosed("", "this client is closed") from None
        finally:
            future.cancel()  # of no effect but when the wait was interrupted

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Have it run; its result comes later. ConnectionClosed when the loop is closed."""
        with self._lock:  # so that what is begun at all is seen by the loop before it stops
            if self._closed or not self._thread.is_alive():  # not alive: in a forked child
                coroutine.close()
                raise ConnectionClosed("", "this client is closed")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Cancel what runs there and end the thread; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()


class Closable(Protocol):
    """What a blocking face is the face of."""

    async def close(self) -> None: ...


F = TypeVar("F", bound=Closable)


class Blocking(Generic[F]):
    """A face that runs `_face` in a thread of its own; may be used from several threads until it is closed."""

    def __init__(self, face: F) -> None:
        self._face = face
        self._loop = LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """As the asynchronous one's, and end the thread; a second time does nothing."""
        if not self._loop.closed:
            try:
                self._loop.run(self._face.close())
            finally:
                self._loop.close()

    def _there(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function gives that is to be called in the loop."""

        async def call() -> T:
            return function(*args, **kwargs)

        return self._loop.run(call())


class AsyncFace(Protocol):
    """Makes calls and lets its user await them."""

    async def ask(self, call: Call[T]) -> T: ...


class BlockingFace(Protocol):
    """Makes calls and returns when they are answered."""

    def ask(self, call: Call[T], /) -> T: ...


class Method(Generic[P, T]):
    """A function that gives a Call, as a method that makes that call.

    On an AsyncFace it is to be awaited, on a BlockingFace it blocks."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__
        self.__wrapped__ = make

    @overload
    def __get__(self, face: None, owner: type) -> "Method[P, T]": ...

    @overload
    def __get__(self, face: AsyncFace, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, face: BlockingFace, owner: type) -> Callable[P, T]: ...

    def __get__(self, face: AsyncFace | BlockingFace | None, owner: type) -> object:
        if face is None:
            return self
        make = self._make

        def method(*args: P.args, **kwargs: P.kwargs) -> object:
            return face.ask(make(*args, **kwargs))

        method.__doc__ = make.__doc__
        return method
