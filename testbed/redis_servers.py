"""Real redis-server processes: with TLS, watched by a Sentinel, in a Cluster."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from redis import Redis

from mqnamesrv.child import Child
from mqnamesrv.program import Program
from mqnamesrv.store import programs
from testbed.eventually import eventually
from testbed.ports import free_port

HOST = "127.0.0.1"
STARTS_WITHIN_S = 30.0


class Server:
    """A redis-server at `port` of the loopback address."""

    def __init__(self, folder: Path, port: int, options: Mapping[str, object], *words: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port
        config = folder / "redis.conf"
        given = {"bind": HOST, "dir": folder, "logfile": folder / "log", "save": '""', **options}
        config.write_text("".join(f"{name} {value}\n" for name, value in given.items()))
        program = next(iter(programs().values()))
        self.process = Child("redis", Program([str(program), str(config), *words]))

    @cached_property
    def client(self) -> Redis:
        """Return a client over plain TCP; replies are text."""
        return Redis(host=HOST, port=self.port, decode_responses=True)


@contextmanager
def running(*servers: Server) -> Iterator[None]:
    """Run servers for the time of the block."""
    with ExitStack() as stack:
        for server in servers:
            server.process.start()
            stack.callback(server.process.stop)
        for server in servers:
            eventually(lambda: _listens(server.port), STARTS_WITHIN_S)  # noqa: B023
        yield


def command(server: Server, *words: object) -> Any:
    """Return the reply to a command for which redis-py has no method."""
    client: Any = server.client
    return client.execute_command(*words)


def free_ports(number: int) -> list[int]:
    """Return different free ports."""
    return [free_port() for _ in range(number)]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
