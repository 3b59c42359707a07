"""A connection of the bench itself, for what is asked before and between the runs of the load generator."""

import socket
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from remoting.codes import ResponseCode
from remoting.command import Command
from remoting.frame import FrameReader

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
        """The next answer; RuntimeError when the server closes."""
        while (answer := self._reader.next_command()) is None:
            data = self.socket.recv(1 << 18)
            if not data:
                raise RuntimeError("the server closed the connection")
            self._reader.feed(data)
        return answer

    def ask(self, frame: bytes) -> Command:
        """Send a request and wait for its answer, which must be a success."""
        self.send(frame)
        return succeeded(self.receive())

    def ask_raw(self, frame: bytes) -> bytes:
        """The answer as its bytes are."""
        self.send(frame)
        raw = b""
        while len(raw) < 4 or len(raw) < 4 + int.from_bytes(raw[:4], "big"):
            raw += self.socket.recv(1 << 18)
        return raw

    def ask_all(self, frames: Iterable[bytes]) -> None:
        """Ask many things, several at once as long as they are small; all must succeed."""
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


def succeeded(answer: Command) -> Command:
    """The answer, unless it says that the request failed (RuntimeError)."""
    if answer.code != ResponseCode.SUCCESS:
        raise RuntimeError(f"refused: {answer.code} {answer.remark}")
    return answer
