"""An answer on its way out: what the application wrote, kept until the peer has read it."""

import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

__all__ = ["LAST_CHUNK", "Answer", "Handover", "Taker"]

LAST_CHUNK: Final = b"0\r\n\r\n"
"""What ends an answer whose length was not known (RFC 9112 section 7.1)."""


class Answer:
    """What gunicorn writes to instead of the socket, so that no thread waits for a peer that does not read."""

    def __init__(self) -> None:
        self._unsent: deque[memoryview] = deque()
        self.held = 0
        self.handover: Handover | None = None
        """Where the connection goes behind the head of this answer; None if it stays."""

    def sendall(self, data: bytes) -> None:
        """Called by gunicorn: add to the answer. One that is handed over has its end from its taker."""
        if data and not (self.handover is not None and data == LAST_CHUNK):
            self._unsent.append(memoryview(data))
            self.held += len(data)

    def send(self, data: bytes) -> int:
        """As `sendall`; all is taken."""
        self.sendall(data)
        return len(data)

    def write_to(self, peer: socket.socket) -> bool:
        """Write what the peer takes; return whether nothing is left. Raises OSError for a peer that is gone."""
        while self._unsent:
            block = self._unsent[0]
            try:
                sent = peer.send(block)
            except BlockingIOError:
                return False
            self.held -= sent
            if sent == len(block):
                self._unsent.popleft()
            else:
                self._unsent[0] = block[sent:]
        return True

    def drop(self) -> None:
        """Forget what is unsent: its peer is gone."""
        self._unsent.clear()
        self.held = 0

    # What else gunicorn does with a socket: it never waits here, and it is closed by the worker's loop.

    def gettimeout(self) -> float:
        return 0.0

    def settimeout(self, seconds: float | None) -> None:
        pass

    def setblocking(self, blocking: bool) -> None:
        pass

    def recv(self, size: int) -> bytes:
        return b""

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        pass


class Taker(Protocol):
    """What connections are handed over to behind the head of their answer: another loop sends the rest."""

    def take(self, peer: socket.socket, answer: Answer, request: Any, give_back: Callable[[], None]) -> None:
        """Called by the worker's loop: own a connection, with what of its answer is unsent, until it is closed, or
        given back behind the whole answer, from any thread."""

    def stop(self) -> None:
        """Called by the worker's loop when the worker ends: end all connections, and take no others."""


class Handover(NamedTuple):
    """What a view sets on the answer of its request (`gunicorn.socket`); `request` is for the taker alone."""

    taker: Taker
    request: Any
