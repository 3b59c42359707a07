"""A whole name server as a process of its own, and a peer that asks it."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.remoting_command import Command
from testbed.delayed_reads import inherited
from testbed.eventually import eventually
from testbed.process_tree import command_line, family

COMMAND = str(Path(sys.executable).with_name("mqnamesrv"))
READY = re.compile(r"^ready remoting=(\S+):(\d+) http=(\S+):(\d+) store=(.+)$", re.M)
READY_TIMEOUT_S = 30


def environment(home: Path, **more: str) -> dict[str, str]:
    """As little as possible of ours, and no port that could clash."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    ports = {"MQNS_LISTEN_PORT": "0", "MQNS_HTTP_PORT": "0", "MQNS_BIND_ADDRESS": "127.0.0.1"}
    return (
        kept
        | inherited()
        | ports
        | {"HOME": str(home), "ROCKETMQ_HOME": str(home), "MQNS_DATA_DIR": str(home / "data")}
        | more
    )


def mqnamesrv(*arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """One run to its end."""
    return subprocess.run(
        [COMMAND, *arguments], env=env, capture_output=True, text=True, timeout=30, check=False
    )


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].startswith(" Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


class NameServer:
    """`mqnamesrv` from its ready line on; a context that ends it."""

    def __init__(
        self, folder: Path, *arguments: str, through: Sequence[str] = (), **more: str
    ) -> None:  # `through` is a command that runs another
        began = time.monotonic()
        self._output = folder / "output"
        self._process = subprocess.Popen(
            [*through, COMMAND, *arguments],
            env=environment(folder, **more),
            stdout=self._output.open("w"),
            stderr=subprocess.STDOUT,
        )
        eventually(lambda: READY.search(self.output) or self._process.poll() is not None, READY_TIMEOUT_S)
        self.ready_after_s = time.monotonic() - began
        ready = READY.search(self.output)
        assert ready, self.output
        self.port, self.http_port, self.store = int(ready[2]), int(ready[4]), ready[5]

    def __enter__(self) -> "NameServer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()

    @property
    def pid(self) -> int:
        """Return the process id of the supervisor."""
        return self._process.pid

    @property
    def output(self) -> str:
        return self._output.read_text()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """-> its exit code."""
        self.send(number)
        return self._process.wait(timeout=30)

    def children(self) -> dict[int, str]:
        """pid -> title of everything below the supervisor."""
        return {pid: command_line(pid).strip() for pid in family(self._process.pid)[1:]}

    def pids(self, words: str) -> set[int]:
        return {pid for pid, text in self.children().items() if words in text}

    def ask(self, code: RequestCode, ext: dict[str, str] | None = None, body: bytes = b"") -> Command:
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(encode(Command(code, opaque=7, ext=ext, body=body)))
            reader = FrameReader()
            while data := connection.recv(65536):
                reader.feed(data)
                if answer := reader.next_command():
                    return answer
        raise ConnectionResetError

    def listing(self) -> dict[str, str]:
        """The answer to 319."""
        lines = self.ask(RequestCode.GET_NAMESRV_CONFIG).body.decode().splitlines()
        return dict(_pair(line) for line in lines)

    def kv(self, namespace: str, key: str) -> str | None:
        return self.ask(RequestCode.GET_KV_CONFIG, {"namespace": namespace, "key": key}).get("value")


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key, value
