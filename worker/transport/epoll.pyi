import asyncio
from collections.abc import Callable
from socket import socket

from access.classes import ALL
from worker.cache.cached_requests import Answers, CachedRequests
from worker.transport.connection import Connection

class Poller:
    read: int
    written: int
    lookups: int
    def __init__(
        self, loop: asyncio.AbstractEventLoop, cached: Callable[[], CachedRequests | None]
    ) -> None: ...
    def open(self, accepted: socket, connection: Connection) -> None: ...
    def stop(self) -> None: ...

def answers(
    requests: CachedRequests, data: bytes, now: float, most: int, first: int = 0, rights: int = ALL
) -> Answers: ...
