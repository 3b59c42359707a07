"""A broker's own port, as far as name servers and the discovery of clients use it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command, encode
from remoting.frame import FrameError, FrameReader

log = logging.getLogger(__name__)

IDLE_S: Final = 120.0
Answer = Callable[[Command], Command]


def answer(command: Command) -> Command:
    """To clients that register or leave: yes. Messages are not taken here."""
    if command.code == RequestCode.HEART_BEAT:
        return command.reply(ResponseCode.SUCCESS)
    if command.code == RequestCode.UNREGISTER_CLIENT:
        return command.reply(ResponseCode.SUCCESS, ext={})
    remark = f" request type {command.code} not supported"
    return command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)


class Door(asyncio.Protocol):
    """One connection that somebody opened. Who sends no frame, does not read, or is silent for 120 s is shut out."""

    def __init__(self, answer: Answer, open_doors: set["Door"]) -> None:
        self._answer = answer
        self._open_doors = open_doors
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._heard_at = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._loop.call_later(IDLE_S, self._look_whether_idle)
        self._open_doors.add(self)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (command := self._reader.next_command()) is not None:
                self._received(command)
        except FrameError as error:
            log.info("%s sent no frame: %s", self._transport.get_extra_info("peername"), error)
            self.shut()

    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self._open_doors.discard(self)

    def shut(self) -> None:
        self._transport.abort()

    def _received(self, command: Command) -> None:
        if command.is_response:
            return
        reply = self._answer(command)
        if not command.is_oneway:
            self._transport.write(encode(reply))

    def _look_whether_idle(self) -> None:
        idle_at = self._heard_at + IDLE_S
        if idle_at > self._loop.time():
            self._timer = self._loop.call_at(idle_at, self._look_whether_idle)
        else:
            self.shut()


class BrokerPort:
    """Listens from `open` to `close`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._doors: set[Door] = set()
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> None:
        """OSError where the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Door(self._answer, self._doors), host, port)

    async def close(self) -> None:
        """Also ends what is connected."""
        if self._server is not None:
            self._server.close()
            for door in list(self._doors):
                door.shut()
            await self._server.wait_closed()
            self._server = None
