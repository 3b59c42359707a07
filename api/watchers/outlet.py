"""The socket of a watcher: what is written and not yet read, until it ends."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from api.transport.answer import LAST_CHUNK, Answer
from api.transport.connection import RESET

__all__ = ["Outlet", "chunk_of"]

GONE_AFTER_MS: Final = 30_000
"""For how long the kernel of a peer may acknowledge nothing (TCP_USER_TIMEOUT): a host that was lost sends no end."""
READ_BYTES: Final = 4096


class Outlet:
    """Writes without waiting. Calls `on_drained` when all that had to wait was read, `on_ended` when the answer or the
    connection is over, and `give_back` with a connection whose answer is whole.

    Made on the loop it will run on; `answer` has what is to be sent first."""

    __slots__ = (
        "_answer",
        "_chunked",
        "_closing",
        "_give_back",
        "_loop",
        "_peer",
        "closed",
        "on_drained",
        "on_ended",
    )

    def __init__(
        self, peer: socket.socket, answer: Answer, give_back: Callable[[], None], *, chunked: bool
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._peer = peer
        self._answer = answer
        self._give_back = give_back
        self._chunked = chunked
        self._closing = False
        self.closed = False
        self.on_drained: Callable[[], None] = _nothing
        self.on_ended: Callable[[], None] = _nothing
        if peer.family != socket.AF_UNIX:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_AFTER_MS)
        self._loop.add_reader(peer, self._read)
        if answer.held:
            self._loop.add_writer(peer, self._writable)

    @property
    def held(self) -> int:
        """Bytes that the peer has not read."""
        return self._answer.held

    def write(self, data: bytes) -> None:
        """Send a part of the answer behind what waits already: a chunk (`chunk_of`), if the answer has chunks.

        Nothing follows what ended the answer."""
        if not self._closing:
            self._send(data)

    def finish(self) -> None:
        """End the answer, and give the connection back when the peer has read all of it."""
        if self.closed or self._closing:
            return
        self._closing = True
        self._send(LAST_CHUNK if self._chunked else b"")

    def abort(self) -> None:
        """Drop the connection, with what waits to be read."""
        if self.closed:
            return
        self._end()
        if self.held:
            self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._answer.drop()  # now: this is in a cycle of references, which is collected much later
        self._peer.close()
        self.on_ended()

    def _end(self) -> None:
        self.closed = True
        self._loop.remove_reader(self._peer)
        self._loop.remove_writer(self._peer)

    def _send(self, data: bytes) -> None:
        if self.closed:
            return
        waited = self.held > 0
        self._answer.sendall(data)
        if not waited and self._flush() and self.held:
            self._loop.add_writer(self._peer, self._writable)

    def _writable(self) -> None:
        if self._flush() and not self.held:
            self._loop.remove_writer(self._peer)
            self.on_drained()

    def _flush(self) -> bool:
        """Write what the peer takes; return whether the connection goes on."""
        try:
            written = self._answer.write_to(self._peer)
        except OSError:
            self.abort()
            return False
        if written and self._closing:
            self._end()
            self._give_back()
            self.on_ended()
            return False
        return True

    def _read(self) -> None:
        """A peer has nothing to say until its answer ends: what comes is its end, or ends it."""
        try:
            self._peer.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            pass
        self.abort()


def _nothing() -> None:
    pass


def chunk_of(data: bytes) -> bytes:
    """Return a chunk of an answer whose length is not known (RFC 9112 section 7.1)."""
    return b"%x\r\n%s\r\n" % (len(data), data)
