"""The replies of one connection: those that are due, those to be written, those that the peer leaves unread.

What is long leaves in pieces, as the peer reads: the transport never has much of it, and what waits here is the reply
itself, which all peers that asked for it have in common."""

import asyncio
from typing import Final

from worker.peer import Frames
from worker.transport.backlog import Backlog
from worker.transport.reply_memory import ReplyHolder, ReplyMemory
from worker.transport.tls_session import TlsError, TlsSession

__all__ = ["AT_ONCE", "PIECE", "UNANSWERED_BYTES_MOST", "UNANSWERED_MOST", "ReplyWriter"]

UNANSWERED_MOST: Final = 1024
UNANSWERED_BYTES_MOST: Final = 4 << 20
"""Requests handed over and not answered, and bytes of theirs, beyond which no more are read."""
PIECE: Final = 256 << 10
"""Bytes given to the transport in one write of what is long."""
AT_ONCE: Final = 1 << 20
"""Bytes written before the other connections are served."""


class ReplyWriter:
    """Buffers replies and writes them to the transport, through TLS where there is some.

    `memory` counts what `holder`, the connection, has of long ones."""

    __slots__ = (
        "_backlog",
        "_buffered",
        "_choked",
        "_closing",
        "_holder",
        "_memory",
        "_unread_before",
        "buffered_bytes",
        "gathering",
        "long_due",
        "paused",
        "tls",
        "transport",
        "unanswered",
        "unanswered_bytes",
    )

    def __init__(self, transport: asyncio.Transport, memory: ReplyMemory, holder: ReplyHolder) -> None:
        self.transport = transport
        self.tls: TlsSession | None = None
        self._memory = memory
        self._holder = holder
        self._buffered: list[bytes] | None = None  # an empty list for each idle connection is much
        self._backlog: Backlog | None = None  # what the transport is to get later
        self._choked = False  # whether it has more than enough
        self._closing = False
        self._unread_before = 0
        self.buffered_bytes = 0
        """Bytes that the next `write` takes."""
        self.gathering = False
        """Whether a `write` is to come, so that `add` needs none."""
        self.unanswered = 0
        self.unanswered_bytes = 0
        """Requests without a reply yet, and their bytes; the reader counts them."""
        self.long_due = False
        """Whether one of them asks for what may be long. None is read behind it, so it is answered when all are."""
        self.paused = False
        """Whether replies wait for the peer to read: no further requests are to be answered."""

    @property
    def many_due(self) -> bool:
        """Whether so much is unanswered that no more requests are to be read."""
        return (
            self.long_due
            or self.unanswered >= UNANSWERED_MOST
            or self.unanswered_bytes >= UNANSWERED_BYTES_MOST
        )

    @property
    def unread(self) -> int:
        """Bytes of replies that the peer's system has not taken."""
        backlog = self._backlog
        return self.transport.get_write_buffer_size() + (0 if backlog is None else backlog.size)

    def progressed(self) -> bool:
        """Return whether the peer has taken bytes since the last call, of what may have been written long ago."""
        before, self._unread_before = self._unread_before, self.unread
        return self._unread_before != before

    @property
    def busy(self) -> bool:
        """Whether requests wait for replies, or replies for the peer."""
        return self.unanswered > 0 or self.buffered_bytes > 0 or self.unread > 0

    def expect(self, requests: list[bytes]) -> None:
        """Count requests that are answered later."""
        self.unanswered += len(requests)
        self.unanswered_bytes += sum(map(len, requests))

    def add(self, frame: Frames) -> None:
        """Buffer the reply to one request."""
        buffered = self._buffered
        if buffered is None:
            buffered = self._buffered = []
        if isinstance(frame, tuple):
            buffered.extend(frame)
            self.buffered_bytes += sum(map(len, frame))
        else:
            buffered.append(frame)
            self.buffered_bytes += len(frame)
        if self.unanswered:
            self.unanswered -= 1
            if not self.unanswered:
                self.unanswered_bytes = 0
                self.long_due = False

    def add_cached(self, blocks: list[bytes]) -> None:
        """Buffer replies to requests that were not counted as unanswered."""
        if size := sum(map(len, blocks)):
            self._buffered = blocks if self._buffered is None else self._buffered + blocks
            self.buffered_bytes += size

    def write(self, unread_limit: int) -> bool:
        """Write what is buffered, or have it written on; False if the peer left more than the limit unread.

        Raises TlsError."""
        buffered, backlog = self._buffered, self._backlog
        if buffered is None:
            return True
        if (self.transport.get_write_buffer_size() if backlog is None else self.unread) > unread_limit:
            return False
        size, self._buffered, self.buffered_bytes = self.buffered_bytes, None, 0
        if backlog is None and size <= 2 * PIECE:
            self._write(buffered[0] if len(buffered) == 1 else b"".join(buffered))
            return True
        if backlog is None:
            backlog = self._backlog = Backlog(self._memory, self._holder)
        backlog.extend(buffered)
        self.paused = True
        return True

    def write_on(self) -> bool:
        """Write what was put off, as much as the transport takes; whether it would take more. Raises TlsError."""
        backlog, left = self._backlog, AT_ONCE
        while backlog is not None and backlog.size:
            if self._choked or left <= 0:
                return not self._choked
            left -= PIECE
            self._write(backlog.take(PIECE))
        self._backlog = None
        self.paused = self._choked
        if self._closing:
            self._close()
        return False

    def choke(self) -> None:
        """Note that the transport has more than enough."""
        self._choked = self.paused = True
        self._count()

    def unchoke(self) -> None:
        """Note that the transport takes more; `write_on` is to be called."""
        self._choked = False
        self.paused = self._backlog is not None
        self._count()

    def write_plain(self, answers: bytes) -> None:
        """Write answers at once, of a connection without TLS for which nothing waits."""
        self.transport.write(answers)
        self._memory.bytes_written += len(answers)

    def write_tls(self) -> None:
        """Write messages of the TLS session itself: handshake, alerts."""
        if self.tls is not None and (outgoing := self.tls.outgoing()):
            self.transport.write(outgoing)

    def close(self) -> None:
        """Have the transport close once everything is written."""
        self._closing = True
        if self._backlog is None:
            self._close()

    def abort(self) -> None:
        """Have the transport end at once."""
        self.drop()
        self.transport.abort()

    def drop(self) -> None:
        """Drop what is not written."""
        self._buffered, self.buffered_bytes = None, 0
        self._backlog = None
        self._memory.release_all(self._holder)
        self.paused = self._choked

    def end(self) -> None:
        """Drop what is not written, and the references to the connection and its TLS session; nothing follows.

        In a cycle of references both would stay until Python's collector runs, after thousands of connections."""
        self.drop()
        self.tls = None
        del self._holder

    def _close(self) -> None:
        self._closing = False
        if self.tls is not None:
            self.transport.write(self.tls.close_notify())
        self.transport.close()

    def _count(self) -> None:
        self._memory.unwritten(self._holder, self.transport.get_write_buffer_size() if self._choked else 0)

    def _write(self, data: bytes) -> None:
        if self.tls is not None:
            try:
                data = self.tls.encrypt(data)
            except TlsError:
                self.drop()
                raise
        self.transport.write(data)
        self._memory.bytes_written += len(data)
        if self._choked:
            self._count()
