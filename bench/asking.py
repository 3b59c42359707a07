"""A blocking client for requests before and between the runs of the load generator."""

import socket
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.frame import FrameReader

TIMEOUT_S = 60.0
WINDOW_BYTES = 1 << 18


class Asking:
    """A blocking connection to 127.0.0.1:`port`."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, frame: bytes) -> None:
        self.socket.sendall(frame)

    def receive(self) -> Command:
        """Return the next reply; RuntimeError when the server closes."""
        while (reply := self._reader.next_command()) is None:
            data = self.socket.recv(1 << 18)
            if not data:
                raise RuntimeError("the server closed the connection")
            self._reader.feed(data)
        return reply

    def ask(self, frame: bytes) -> Command:
        """Send a request and return its reply, which must be a success."""
        self.send(frame)
        return succeeded(self.receive())

    def ask_raw(self, frame: bytes) -> bytes:
        """Send a request and return the bytes of its reply."""
        self.send(frame)
        raw = b""
        while len(raw) < 4 or len(raw) < 4 + int.from_bytes(raw[:4], "big"):
            raw += self.socket.recv(1 << 18)
        return raw

    def ask_all(self, frames: Iterable[bytes]) -> None:
        """Send many requests, small ones several at once; all must succeed."""
        window: list[bytes] = []
        for frame in frames:
            window.append(frame)
            if sum(map(len, window)) >= WINDOW_BYTES:
                self._ask_at_once(window)
                window = []
        self._ask_at_once(window)

    def _ask_at_once(self, frames: list[bytes]) -> None:
        self.send(b"".join(frames))
        for _ in frames:
            succeeded(self.receive())


def succeeded(reply: Command) -> Command:
    """Return the reply if it is a success, else raise RuntimeError."""
    if reply.code != ResponseCode.SUCCESS:
        raise RuntimeError(f"refused: {reply.code} {reply.remark}")
    return reply
