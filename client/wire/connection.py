"""One connection to a peer: frames out, commands in, and its end."""

import asyncio
from typing import Final, Protocol, cast

from client.errors import SendError
from remoting.command import Command, encode
from remoting.frame import FRAME_MAX_LENGTH, FrameError, FrameReader

FINISH_S: Final = 1.0
"""How long what was written may take to leave when a connection is ended in an orderly way."""


class Owner(Protocol):
    """Whom a connection tells what happens to it."""

    def made(self, connection: "Connection") -> None:
        """It exists, from now until `ended`."""

    def received(self, connection: "Connection", command: Command) -> None:
        """A command has come."""

    def lost(self, connection: "Connection", reason: str) -> None:
        """It is of no use any more; told once."""

    def ended(self, connection: "Connection") -> None:
        """Its socket is closed."""


class Connection(asyncio.Protocol):
    """Created by whatever connects; of use while it is `active`."""

    def __init__(self, address: str, owner: Owner, idle_s: float) -> None:
        self.address = address
        self._owner = owner
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._ended = asyncio.Event()
        self._reason: str | None = None
        self._used_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def active(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and self._reason is None and not self._transport.is_closing()

    async def send(self, command: Command, deadline: float) -> None:
        """Write a command, once there is room. SendError when it cannot be written before `deadline` (loop time)."""
        frame = encode(command)
        if len(frame) > FRAME_MAX_LENGTH:
            raise SendError(self.address, f"a frame of {len(frame)} bytes is more than any peer reads")
        if not self._writable.is_set():
            await self._room(deadline)
        if not self.active:
            raise SendError(self.address, f"not sent: {self._reason or 'the connection is closing'}")
        self._write(frame)

    def answer(self, command: Command) -> bool:
        """Write the answer to a peer's own request; False, and nothing written, while the peer does not read."""
        if not self.active or not self._writable.is_set():
            return False
        self._write(encode(command))
        return True

    def abort(self, reason: str) -> None:
        """End it at once; what was not written yet is lost."""
        self._lose(reason)
        if self._transport is not None:
            self._transport.abort()

    def close(self, reason: str) -> None:
        """End it when all that was written has left, but after FINISH_S at the latest."""
        self._lose(reason)
        if self._transport is not None and self._timer is None:
            self._transport.close()
            self._timer = self._loop.call_later(FINISH_S, self._transport.abort)

    def forsake(self, reason: str) -> None:
        """End it when connecting has failed: uvloop then closes the socket, and may tell nobody."""
        self.abort(reason)
        self._loop.call_soon(self._end)

    async def wait_ended(self) -> None:
        """Returns when the socket is closed."""
        await self._ended.wait()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._writable.set()
        self._used_at = self._loop.time()
        self._timer = self._loop.call_at(self._used_at + self._idle_s, self._look_whether_idle)
        self._owner.made(self)

    def data_received(self, data: bytes) -> None:
        self._used_at = self._loop.time()
        self._reader.feed(data)
        try:
            while self._reason is None and (command := self._reader.next_command()) is not None:
                self._owner.received(self, command)
            self._reader.let_go()
        except FrameError as error:
            self.abort(f"closed, since the peer sent no frame: {error}")

    def eof_received(self) -> None:
        self.close("closed by the peer")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._lose(f"connection lost: {error}" if error else "closed by the peer")
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()
        self._owner.ended(self)

    async def _room(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._writable.wait()
        except TimeoutError:
            reason = "the peer did not take what was written before"
            self.abort(reason)
            raise SendError(self.address, f"not sent: {reason}") from None

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._used_at = self._loop.time()
        self._transport.write(frame)

    def _lose(self, reason: str) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        self._writable.set()  # whoever waits for room learns that there will be none
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._owner.lost(self, reason)

    def _look_whether_idle(self) -> None:
        idle_at = self._used_at + self._idle_s
        if idle_at > self._loop.time():
            self._timer = self._loop.call_at(idle_at, self._look_whether_idle)
        else:
            self.abort(f"closed, since it was idle for {self._idle_s:g} s")
