"""A small blocking client, and a gunicorn with the echo worker to talk to."""

import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from registry.options.catalogue import Options, to_env
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FrameReader
from testbed.transports import chosen
from tests.worker.transport.echo_worker import ABOUT, ECHO

ROOT = Path(__file__).parents[3]
ECHO_WORKER = "tests.worker.transport.echo_worker"
TIMEOUT_S = 20.0
ONEWAY, RESPONSE = 2, 1
_opaques = itertools.count(1)


def request(code: int, body: bytes = b"", flag: int = 0, **ext: int) -> bytes:
    """The frame of a request for the echo service."""
    fields = {name: str(value) for name, value in ext.items()}
    return encode(Command(code, next(_opaques), flag=flag, version=513, ext=fields, body=body))


class Client:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(TIMEOUT_S)
        self.sock = sock
        self._reader = FrameReader()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None
    ) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def answer(self) -> Command:
        """The next answer; EOFError where the connection ends first."""
        while (command := self._reader.next_command()) is None:
            data = self.sock.recv(1 << 16)
            if not data:
                raise EOFError
            self._reader.feed(data)
        return command

    def ask(self, code: int, body: bytes = b"", **ext: int) -> Command:
        self.send(request(code, body, **ext))
        return self.answer()

    def about(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask(ABOUT).body)
        return found

    @property
    def tls(self) -> ssl.SSLSocket:
        assert isinstance(self.sock, ssl.SSLSocket)
        return self.sock

    def is_answered(self) -> bool:
        """Whether there comes an answer rather than the connection's end."""
        try:
            self.answer()
        except (EOFError, ConnectionError, ssl.SSLError):
            return False
        return True

    def rest(self) -> bytes:
        """Everything until the connection's end."""
        parts = []
        try:
            while data := self.sock.recv(1 << 20):
                parts.append(data)
        except (ConnectionError, ssl.SSLEOFError):
            pass
        return b"".join(parts)


class Server:
    """gunicorn with echo workers."""

    def __init__(
        self, process: subprocess.Popen[bytes], address: tuple[str, int], log: Path, stopped: Path
    ) -> None:
        self.process = process
        self.address = address
        self._log = log
        self._stopped = stopped

    def connect(self, source: str = "") -> Client:
        return Client(socket.create_connection(self.address, TIMEOUT_S, (source, 0) if source else None))

    def tls(self, context: ssl.SSLContext | None = None, before: bytes = b"") -> Client:
        sock = socket.create_connection(self.address, TIMEOUT_S)
        sock.sendall(before)
        return Client((context or insecure()).wrap_socket(sock))

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def stopped(self) -> list[dict[str, Any]]:
        """What each service saw until it was stopped."""
        return (
            [json.loads(line) for line in self._stopped.read_text().splitlines()]
            if self._stopped.exists()
            else []
        )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """The exit code, once gunicorn has gone."""
        return self.process.wait(20)


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    workers: int = 1,
    tls: bool = False,
    wait: bool = True,
    env: dict[str, str] | None = None,
    **options: Any,
) -> Iterator[Server]:
    """A gunicorn with a port of its own, until the block ends; waits until it serves, seen by TLS if `tls`."""
    folder.mkdir(exist_ok=True)
    log, stopped = folder / "log", folder / "stopped"
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.set_inheritable(True)
    given = {"tls_config_file": str(folder / "none"), "epoll_transport": chosen() == "true", **options}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", f"{ECHO_WORKER}:app", "-k", f"{ECHO_WORKER}.EchoWorker"),
                *("--bind", f"fd://{listener.fileno()}", "--workers", str(workers)),
                *("--no-control-socket", "--log-level", "info", *arguments),
            ],
            cwd=ROOT,
            env=os.environ | to_env(Options(**given)) | {"ECHO_STOPPED": str(stopped)} | (env or {}),
            pass_fds=[listener.fileno()],
            stdout=out,
            stderr=out,
        )
    address = listener.getsockname()
    listener.close()
    try:
        server = Server(process, address, log, stopped)
        if wait:  # in the backlog, until a worker serves
            with server.tls() if tls else server.connect() as client:
                client.ask(ECHO)
        yield server
    finally:
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def insecure() -> ssl.SSLContext:
    """A client's context that takes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
