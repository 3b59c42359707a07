"""A server that replies as a test wants: late, with errors, never; it records requests by connection."""

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.frame import FrameReader

Behaviour = Callable[[int, Command], bytes]


def reply_to(command: Command, code: int = 0, kind: SerializeType = SerializeType.ROCKETMQ) -> bytes:
    """Return the frame of the reply to a command."""
    return encode(
        Command(code, command.opaque, 1, 0, ext={"note": '"code":7'}, body=b"body", serialize_type=kind)
    )


class OddServer:
    """`behave` gets the number of a connection and a request, and returns what to send: frames, or b"" for nothing.

    A connection has a thread of its own, so `behave` may wait. `asked` holds the topics asked for, by connection."""

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked: dict[int, list[str]] = {}
        self._accepted: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections."""
        for one in self._accepted:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the other end was quicker

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            number = len(self._accepted)
            self._accepted.append(accepted)
            self.asked[number] = []
            threading.Thread(target=self._serve, args=(number, accepted), daemon=True).start()

    def _serve(self, number: int, accepted: socket.socket) -> None:
        reader = FrameReader()
        with accepted:
            try:
                while data := accepted.recv(65536):
                    reader.feed(data)
                    while (command := reader.next_command()) is not None:
                        self.asked[number].append((command.ext or {}).get("topic", ""))
                        accepted.sendall(self._behave(number, command))
            except OSError:
                return
