"""Whether a connection is read. There are two reasons not to, each with an end of its own: what has arrived waits for a
time slice, and an incomplete frame waits for memory."""

import asyncio
from fcntl import ioctl
from sys import byteorder
from termios import FIONREAD
from typing import Protocol

from worker.peer import Peer
from worker.transport.owner import Owner

__all__ = ["Intake", "IntakeConnection"]


class IntakeConnection(Peer, Protocol):
    """The connection: `worker.transport.connection.Connection`."""

    host: str

    @property
    def owner(self) -> Owner: ...
    def abort(self, reason: str) -> None: ...


class Intake:
    """Pauses and resumes reading of one connection; a `worker.transport.frame_memory.FrameReading`."""

    __slots__ = ("_connection", "_reads", "_transport", "_waits", "counted", "ended", "paused")

    def __init__(self, connection: IntakeConnection, transport: asyncio.Transport) -> None:
        self._connection = connection
        self._transport = transport
        self._reads = True
        self._waits = False  # for memory
        self.counted = False
        """Whether the worker's memory of frames counts what has arrived."""
        self.ended = False
        """Whether the peer sends no more."""
        self.paused = False
        """Whether what has arrived waits for another time slice."""

    @property
    def host(self) -> str:
        """Where the peer comes from."""
        return self._connection.host

    @property
    def known(self) -> bool:
        """Whether a broker is registered from there."""
        return self._connection.owner.service.known_hosts.knows(self._connection)

    @property
    def unread(self) -> int:
        """How many bytes have come that were not read yet."""
        if self._connection.closed:
            return 0
        count = bytearray(4)
        ioctl(self._transport.get_extra_info("socket"), FIONREAD, count)
        return int.from_bytes(count, byteorder)

    def incomplete(self, length: int, received: int) -> None:
        """Note that so much has come of a frame of `length` bytes; 0 if no frame is incomplete.

        It is read on while there is memory for it."""
        memory = self._connection.owner.service.frame_memory
        if length:
            self.counted = True
            self._wait(not memory.grow(self, length, received))
        elif self.counted:
            self.counted = False
            memory.end(self)
            self._wait(False)

    def read_on(self) -> None:
        """Resume a frame for which there is memory now."""
        self._wait(False)

    def abort(self, reason: str) -> None:
        """End the connection at once."""
        self._connection.abort(reason)

    def pause(self) -> None:
        """Read no more until `resume`."""
        self.paused = True
        self._switch()

    def resume(self) -> None:
        """Read on, if memory allows it."""
        if self.paused:
            self.paused = False
            self._switch()

    def _wait(self, waits: bool) -> None:
        if waits != self._waits:
            self._waits = waits
            self._switch()

    def _switch(self) -> None:
        """Have the transport do as both reasons say."""
        reads = not (self.paused or self._waits)
        if reads == self._reads or self.ended or self._connection.closed:
            return
        self._reads = reads
        if reads:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
