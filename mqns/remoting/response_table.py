"""Requests in flight by opaque (RocketMQ NettyRemotingAbstract.responseTable)."""

import asyncio
import itertools
from typing import Final

import msgspec

from mqns.errors import CallTimeout, ConnectionClosed, RemotingError
from mqns.remoting.connection import ClientConnection
from rocketmq_remoting.command import Command

SCAN_EVERY_S: Final = 1.0
GRACE_S: Final = 1.0
"""Time after its timeout until a scan ends a call."""

_opaques: Final = itertools.count()


def next_opaque() -> int:
    """Return the next opaque: counts from 0 in the process; an int32, so negative from 2**31 on."""
    return (next(_opaques) + 2**31) % 2**32 - 2**31


class _ResponseFuture(msgspec.Struct):
    connection: ClientConnection
    response: asyncio.Future[Command]
    expires_at: float


class ResponseTable:
    """Opaque -> future of the response.

    A call ends by its own timer, or without one by a scan, which runs every second while calls are in flight. (Java's
    first scan is 3 s after the start, when only calls with shorter timeouts can be due.)"""

    def __init__(self) -> None:
        self._futures: dict[int, _ResponseFuture] = {}
        self._scan_timer: asyncio.TimerHandle | None = None

    async def wait(
        self, opaque: int, connection: ClientConnection, expires_at: float, deadline: float | None
    ) -> Command:
        """Return the response to the request `opaque` sent over `connection`.

        TimeoutError at `deadline`; without one CallTimeout by the first scan more than GRACE_S after `expires_at`.
        ConnectionClosed if the connection ends."""
        response: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self._futures[opaque] = _ResponseFuture(connection, response, expires_at + GRACE_S)
        if deadline is None:
            self._schedule_scan()
        try:
            async with asyncio.timeout_at(deadline):
                return await response
        finally:
            self._futures.pop(opaque, None)
            if response.done() and not response.cancelled():
                response.exception()  # mark it as retrieved, which a cancelled caller has not done

    def complete(self, connection: ClientConnection, command: Command) -> bool:
        """Set the response of a request; False if no request with its opaque is in flight on that connection."""
        future = self._futures.get(command.opaque) if command.opaque is not None else None
        if future is None or future.connection is not connection or future.response.done():
            return False
        future.response.set_result(command)
        return True

    def has_requests_on(self, connection: ClientConnection) -> bool:
        """Return whether any request is in flight on a connection."""
        return any(future.connection is connection for future in self._futures.values())

    def fail(self, connection: ClientConnection, reason: str) -> None:
        """Fail all requests in flight on a connection."""
        for future in self._futures.values():
            if future.connection is connection:
                _fail(future, ConnectionClosed(connection.address, reason))

    def _schedule_scan(self) -> None:
        """Schedule a scan unless one is scheduled."""
        if self._scan_timer is None:
            self._scan_timer = asyncio.get_running_loop().call_later(SCAN_EVERY_S, self._scan)

    def _scan(self) -> None:
        self._scan_timer = None
        now = asyncio.get_running_loop().time()
        for future in self._futures.values():
            if future.expires_at <= now:
                _fail(future, CallTimeout(future.connection.address, "no answer within the time of the call"))
        if self._futures:
            self._schedule_scan()


def _fail(future: _ResponseFuture, error: RemotingError) -> None:
    if not future.response.done():
        future.response.set_exception(error)
