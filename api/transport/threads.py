"""The threads of an HTTP worker: no host waits behind all that another one asks for, and health for nothing else."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Final, NamedTuple

from api.transport.connection import Connection

__all__ = ["RequestThreads"]

HEALTH: Final = ("/healthz", "/readyz", "/metrics")
"""Paths with threads of their own: what others ask may take all, for as long as a store hangs."""
HEALTH_THREADS: Final = 2
"""Threads of each of these paths."""

Handle = Callable[[Connection], bool]


class _Request(NamedTuple):
    done: "Future[bool]"
    handle: Handle
    connection: Connection


class _FairPool:
    """Threads that answer one request of each host that waits, then the next one of each."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads)
        self._lock = Lock()
        self._waiting: dict[object, deque[_Request]] = {}
        """By host; that of the next request is the first."""

    def submit(self, handle: Handle, connection: Connection) -> "Future[bool]":
        request = _Request(Future(), handle, connection)
        with self._lock:
            self._waiting.setdefault(_host_of(connection.client), deque()).append(request)
        self._threads.submit(self._answer_next)
        return request.done

    def shutdown(self, wait: bool) -> None:
        self._threads.shutdown(wait)

    def _answer_next(self) -> None:
        request = self._take()
        if not request.done.set_running_or_notify_cancel():
            return
        try:
            request.done.set_result(request.handle(request.connection))
        except BaseException as error:
            request.done.set_exception(error)

    def _take(self) -> _Request:
        with self._lock:
            host = next(iter(self._waiting))
            requests = self._waiting.pop(host)
            request = requests.popleft()
            if requests:
                self._waiting[host] = requests  # behind the others
            return request


class RequestThreads:
    """What gunicorn's threaded worker calls of an executor; `threads` are for all paths but those of health."""

    def __init__(self, threads: int) -> None:
        self._pool = _FairPool(threads)
        self._health = {path: _FairPool(HEALTH_THREADS) for path in HEALTH}

    def submit(self, handle: Handle, connection: Connection) -> "Future[bool]":
        """Have a thread call `handle` with a connection whose request is whole."""
        return self._health.get(connection.parser.path, self._pool).submit(handle, connection)

    def shutdown(self, wait: bool = True) -> None:
        """Take no more requests."""
        for pool in (self._pool, *self._health.values()):
            pool.shutdown(wait)


def _host_of(client: object) -> object:
    """Return the host of a socket's address; all of a Unix socket are one."""
    return client[0] if isinstance(client, tuple) else ""
