"""The replies of one connection: those that are due, those to be written, those that the peer leaves unread."""

import asyncio
from typing import Final

from worker.peer import Frames
from worker.transport.tls_session import TlsSession

__all__ = ["UNANSWERED_BYTES_MOST", "UNANSWERED_MOST", "ReplyWriter"]

UNANSWERED_MOST: Final = 1024
UNANSWERED_BYTES_MOST: Final = 32 << 20
"""Requests handed over and not answered, and bytes of their bodies, beyond which no more are read."""


class ReplyWriter:
    """Buffers replies and writes them to the transport, through TLS where there is some."""

    __slots__ = (
        "_buffered",
        "_unread_before",
        "buffered_bytes",
        "gathering",
        "paused",
        "tls",
        "transport",
        "unanswered",
        "unanswered_bytes",
    )

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.tls: TlsSession | None = None
        self._buffered: list[bytes] | None = None  # an empty list for each idle connection is much
        self._unread_before = 0
        self.buffered_bytes = 0
        """Bytes that the next `write` takes."""
        self.gathering = False
        """Whether a `write` is to come, so that `add` needs none."""
        self.unanswered = 0
        self.unanswered_bytes = 0
        """Requests without a reply yet, and bytes of their bodies; the reader counts them."""
        self.paused = False
        """Whether the transport has more than enough: no further requests are to be answered."""

    @property
    def many_due(self) -> bool:
        """Whether so much is unanswered that no more requests are to be read."""
        return self.unanswered >= UNANSWERED_MOST or self.unanswered_bytes >= UNANSWERED_BYTES_MOST

    @property
    def unread(self) -> int:
        """Bytes written that the peer's system has not taken."""
        return self.transport.get_write_buffer_size()

    def progressed(self) -> bool:
        """Return whether the peer has taken bytes since the last call, of what may have been written long ago."""
        before, self._unread_before = self._unread_before, self.unread
        return self._unread_before != before

    @property
    def busy(self) -> bool:
        """Whether requests wait for replies, or replies for the peer."""
        return self.unanswered > 0 or self.buffered_bytes > 0 or self.unread > 0

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

    def write(self, unread_limit: int) -> bool:
        """Write what is buffered; False, and nothing written, if the peer left more than the limit unread.

        Raises TlsError."""
        buffered, transport = self._buffered, self.transport
        if buffered is None:
            return True
        if transport.get_write_buffer_size() > unread_limit:
            return False
        data = buffered[0] if len(buffered) == 1 else b"".join(buffered)
        self.drop()
        transport.write(data if self.tls is None else self.tls.encrypt(data))
        return True

    def write_tls(self) -> None:
        """Write messages of the TLS session itself: handshake, alerts."""
        if self.tls is not None and (outgoing := self.tls.outgoing()):
            self.transport.write(outgoing)

    def close(self) -> None:
        """Have the transport close once everything is written."""
        if self.tls is not None:
            self.transport.write(self.tls.close_notify())
        self.transport.close()

    def drop(self) -> None:
        """Drop what is buffered."""
        self._buffered = None
        self.buffered_bytes = 0
