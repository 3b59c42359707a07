"""Requests that wait for their answer (RocketMQ's response table)."""

import asyncio
import itertools
from typing import Final

import msgspec

from client.errors import CallTimeout, ConnectionClosed, RemotingError
from client.wire.connection import Connection
from remoting.command import Command

SCAN_EVERY_S: Final = 1.0
GRACE_S: Final = 1.0
"""What a call may be over its time before a scan ends it."""

_opaques: Final = itertools.count()


def next_opaque() -> int:
    """Counts up from 0 in the process; an int32, so negative from 2**31 on."""
    return (next(_opaques) + 2**31) % 2**32 - 2**31


class _Waiting(msgspec.Struct):
    connection: Connection
    answer: asyncio.Future[Command]
    expires_at: float


class InFlight:
    """Opaque -> waiting call.

    A call has its own timer, or none and is ended by a scan, which is done each second while anything waits. (Java's
    first one comes 3 s after the start, when nothing can be due but calls shorter than that.)"""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._scan_timer: asyncio.TimerHandle | None = None

    async def answer(
        self, opaque: int, connection: Connection, expires_at: float, deadline: float | None
    ) -> Command:
        """Wait for the answer to what was sent over `connection`.

        TimeoutError at `deadline`; without one CallTimeout by the first scan that is over a second later than
        `expires_at`. ConnectionClosed when the connection ends."""
        answer: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self._waiting[opaque] = _Waiting(connection, answer, expires_at + GRACE_S)
        if deadline is None:
            self._arm()
        try:
            async with asyncio.timeout_at(deadline):
                return await answer
        finally:
            self._waiting.pop(opaque, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # else asyncio complains when a cancelled caller has not fetched it

    def answered(self, connection: Connection, command: Command) -> bool:
        """Hand an answer to whom it is for; False when nobody waits for it on that connection."""
        waiting = self._waiting.get(command.opaque) if command.opaque is not None else None
        if waiting is None or waiting.connection is not connection or waiting.answer.done():
            return False
        waiting.answer.set_result(command)
        return True

    def waits_on(self, connection: Connection) -> bool:
        """Whether any call waits for an answer there."""
        return any(waiting.connection is connection for waiting in self._waiting.values())

    def fail(self, connection: Connection, reason: str) -> None:
        """End all calls that wait there."""
        for waiting in self._waiting.values():
            if waiting.connection is connection:
                _fail(waiting, ConnectionClosed(connection.address, reason))

    def _arm(self) -> None:
        """Have a scan done, if none is planned yet."""
        if self._scan_timer is None:
            self._scan_timer = asyncio.get_running_loop().call_later(SCAN_EVERY_S, self._scan)

    def _scan(self) -> None:
        self._scan_timer = None
        now = asyncio.get_running_loop().time()
        for waiting in self._waiting.values():
            if waiting.expires_at <= now:
                _fail(
                    waiting, CallTimeout(waiting.connection.address, "no answer within the time of the call")
                )
        if self._waiting:
            self._arm()


def _fail(waiting: _Waiting, error: RemotingError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
