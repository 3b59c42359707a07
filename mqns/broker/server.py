"""A broker's port, for probes and pushes of name servers and heartbeats of clients."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FrameError, FrameReader

log = logging.getLogger(__name__)

IDLE_S: Final = 120.0
CONNECTIONS_MOST: Final = 256
"""One more closes the one that was silent longest, so that files are left for connections to name servers."""
HELD_MOST: Final = 16 << 20
"""Bytes of frames under way, of all connections together; beyond that the one with most is closed."""
HELD_LITTLE: Final = 64 << 10
"""Bytes of a connection that is not closed for them: what name servers push is shorter, and so are clients'
heartbeats."""
Respond = Callable[[Command], Command]


def respond(command: Command) -> Command:
    """Return the response to a client: success for heartbeats and unregistrations, code 3 for messages."""
    if command.code == RequestCode.HEART_BEAT:
        return command.reply(ResponseCode.SUCCESS)
    if command.code == RequestCode.UNREGISTER_CLIENT:
        return command.reply(ResponseCode.SUCCESS, ext={})
    remark = f" request type {command.code} not supported"
    return command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)


class BrokerServerConnection(asyncio.Protocol):
    """An accepted connection; closed after bytes that are no frame, and after 120 s without traffic."""

    def __init__(self, respond: Respond, connections: set["BrokerServerConnection"]) -> None:
        self._respond = respond
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._received_at = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._loop.call_later(IDLE_S, self._check_idle)
        self._connections.add(self)
        if len(self._connections) > CONNECTIONS_MOST:
            min(self._connections, key=lambda one: one._received_at).abort()

    def data_received(self, data: bytes) -> None:
        self._received_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (command := self._reader.next_command()) is not None:
                self._received(command)
            self._reader.drop_consumed()
        except FrameError as error:
            log.info(
                "%s sent no frame and is disconnected: %s", self._transport.get_extra_info("peername"), error
            )
            self.abort()
        if self._reader.pending > HELD_LITTLE and sum(map(_held, self._connections)) > HELD_MOST:
            max(self._connections, key=_held).abort()

    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self._connections.discard(self)

    def abort(self) -> None:
        self._connections.discard(self)
        self._reader = FrameReader()
        self._transport.abort()

    def _received(self, command: Command) -> None:
        if command.is_response:
            return
        reply = self._respond(command)
        if not command.is_oneway:
            self._transport.write(encode(reply))

    def _check_idle(self) -> None:
        idle_at = self._received_at + IDLE_S
        if idle_at > self._loop.time():
            self._timer = self._loop.call_at(idle_at, self._check_idle)
        else:
            self.abort()


def _held(connection: BrokerServerConnection) -> int:
    return connection._reader.pending


class BrokerServer:
    """Accepts connections from `open` to `close`."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._connections: set[BrokerServerConnection] = set()
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> None:
        """Listen. OSError if the port is in use."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: BrokerServerConnection(self._respond, self._connections), host, port
        )

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
            for connection in list(self._connections):
                connection.abort()
            await self._server.wait_closed()
            self._server = None
