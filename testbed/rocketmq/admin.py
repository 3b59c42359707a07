"""mqadmin: many commands in one JVM (java/Admin.java), or one as an operator starts it."""

import socket
import struct
from collections.abc import Sequence

from msgspec import Struct

from testbed.process import Process
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import Addressed
from testbed.rocketmq.stage import Stage

START_S = 60.0
COMMAND_S = 40.0
MAIN = "org.apache.rocketmq.tools.command.MQAdminStartup"


class Output(Struct, frozen=True):
    """The output of a command. Its exit code is 0 for failures too."""

    out: str
    err: str


class Admin:
    """An mqadmin of one release that takes command after command, to whichever name server."""

    def __init__(self, stage: Stage, release: Release, options: Sequence[str] = ()) -> None:
        process = stage.java(
            f"admin-{release.version}", release, "Admin", heap_mb=128, options=["-Dlog.level=OFF", *options]
        )
        port = int(process.await_printed(r"port (\d+)", START_S)[1])
        self._connection = socket.create_connection(("127.0.0.1", port), START_S)
        self._connection.settimeout(COMMAND_S)

    def __call__(self, server: Addressed, command: str, *arguments: str) -> Output:
        """Run one command and return its output; TimeoutError when it does not end."""
        words = [word.encode() for word in (command, "-n", server.address, *arguments)]
        framed = b"".join(struct.pack(">i", len(word)) + word for word in words)
        self._connection.sendall(struct.pack(">i", len(words)) + framed)
        return Output(self._text(), self._text())

    def close(self) -> None:
        """End the JVM."""
        self._connection.close()

    def _text(self) -> str:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size).decode()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                raise ConnectionError("the mqadmin JVM has gone")
            data += part
        return data


def start_command(
    stage: Stage,
    release: Release,
    server: Addressed,
    command: str,
    *arguments: str,
    options: Sequence[str] = (),
) -> Process:
    """Start one command in a JVM of its own."""
    words = [command, "-n", server.address, *arguments]
    return stage.java(
        f"mqadmin-{command}-{release.version}", release, MAIN, *words, options=["-Dlog.level=OFF", *options]
    )


def run_command(
    stage: Stage,
    release: Release,
    server: Addressed,
    command: str,
    *arguments: str,
    options: Sequence[str] = (),
) -> str:
    """Run one command in a JVM of its own and return its output."""
    process = start_command(stage, release, server, command, *arguments, options=options)
    process.await_end(COMMAND_S)
    return process.printed()
