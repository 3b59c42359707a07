"""One connection to a peer: sends frames, receives commands."""

import asyncio
from typing import Final, Protocol, cast

from mqns.errors import SendError
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FRAME_MAX_LENGTH, FrameError, FrameReader

FINISH_S: Final = 1.0
"""Time for written bytes to be sent before a closing connection is aborted."""


class ConnectionOwner(Protocol):
    """Receives the events of a connection."""

    def made(self, connection: "ClientConnection") -> None:
        """The connection is established; `ended` follows at its end."""

    def received(self, connection: "ClientConnection", command: Command) -> None:
        """A command was received."""

    def disconnected(self, connection: "ClientConnection", reason: str) -> None:
        """The connection is no longer usable; called once."""

    def ended(self, connection: "ClientConnection") -> None:
        """Its socket is closed."""


class ClientConnection(asyncio.Protocol):
    """The protocol of a connection; usable while it is `active`."""

    def __init__(self, address: str, owner: ConnectionOwner, idle_s: float) -> None:
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
        """Write a command, after waiting for buffer space. SendError if that takes until `deadline` (loop time)."""
        frame = encode(command)
        if len(frame) > FRAME_MAX_LENGTH:
            raise SendError(self.address, f"a frame of {len(frame)} bytes is more than any peer reads")
        if not self._writable.is_set():
            await self._wait_for_space(deadline)
        if not self.active:
            raise SendError(self.address, f"not sent: {self._reason or 'the connection is closing'}")
        self._write(frame)

    def respond(self, command: Command) -> bool:
        """Write the response to a peer's request; False, with nothing written, while the peer does not read."""
        if not self.active or not self._writable.is_set():
            return False
        self._write(encode(command))
        return True

    def abort(self, reason: str) -> None:
        """Close the connection at once; unsent bytes are dropped."""
        self._disconnect(reason)
        if self._transport is not None:
            self._transport.abort()

    def close(self, reason: str) -> None:
        """Close the connection after its written bytes are sent, after FINISH_S at the latest."""
        self._disconnect(reason)
        if self._transport is not None and self._timer is None:
            self._transport.close()
            self._timer = self._loop.call_later(FINISH_S, self._transport.abort)

    def abandon(self, reason: str) -> None:
        """Close a connection whose setup failed: uvloop closes the socket, but may not call connection_lost."""
        self.abort(reason)
        self._loop.call_soon(self._end)

    async def wait_ended(self) -> None:
        """Return when the socket is closed."""
        await self._ended.wait()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._writable.set()
        self._used_at = self._loop.time()
        self._timer = self._loop.call_at(self._used_at + self._idle_s, self._check_idle)
        self._owner.made(self)

    def data_received(self, data: bytes) -> None:
        self._used_at = self._loop.time()
        self._reader.feed(data)
        try:
            while self._reason is None and (command := self._reader.next_command()) is not None:
                self._owner.received(self, command)
            self._reader.drop_consumed()
        except FrameError as error:
            self.abort(f"closed, since the peer sent no frame: {error}")

    def eof_received(self) -> None:
        self.close("closed by the peer")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._disconnect(f"connection lost: {error}" if error else "closed by the peer")
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()
        self._owner.ended(self)

    async def _wait_for_space(self, deadline: float) -> None:
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

    def _disconnect(self, reason: str) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        self._writable.set()  # wakes senders, which then raise SendError
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._owner.disconnected(self, reason)

    def _check_idle(self) -> None:
        idle_at = self._used_at + self._idle_s
        if idle_at > self._loop.time():
            self._timer = self._loop.call_at(idle_at, self._check_idle)
        else:
            self.abort(f"closed, since it was idle for {self._idle_s:g} s")
