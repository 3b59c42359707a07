"""A broker's own port: receives what the name server pushes there."""

import socket
import threading
from typing import Self

from rocketmq_remoting.command import Command
from rocketmq_remoting.frame import FrameReader


class Listener:
    """Listens on `ip`, a port of the system's choice, and stores received commands."""

    def __init__(self, ip: str) -> None:
        self._socket = socket.create_server((ip, 0))
        self.addr = f"{ip}:{self._socket.getsockname()[1]}"
        self.received: list[Command] = []
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed by the test
            self._connections.append(connection)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        reader = FrameReader()
        while True:
            try:
                data = connection.recv(1 << 16)
            except OSError:
                return  # closed by the test
            if not data:
                return
            reader.feed(data)
            while command := reader.next_command():
                self.received.append(command)
