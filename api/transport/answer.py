"""An answer on its way out: what the application wrote, kept until the peer has read it."""

import socket
from collections import deque


class Answer:
    """What gunicorn writes to instead of the socket, so that no thread waits for a peer that does not read."""

    def __init__(self) -> None:
        self._unsent: deque[memoryview] = deque()
        self.held = 0

    def sendall(self, data: bytes) -> None:
        """Called by gunicorn: add to the answer."""
        if data:
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
