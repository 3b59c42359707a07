"""Servers of ours, and `mqns` as it is called."""

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from mqns.cli.app import app
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.scene import Scene
from tests.conformance.conftest import ending, launch, new_server, store_url

__all__ = ["ending", "launch", "new_server", "store_url"]

ENVIRONMENT = {
    **dict.fromkeys(("NAMESRV_ADDR", "MQNS_HTTP", "NO_COLOR", "FORCE_COLOR")),
    "COLUMNS": "200",
}


class Ended(msgspec.Struct, frozen=True):
    """A run of `mqns`."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed, as JSON."""
        assert self.out, self
        return json.loads(self.out)

    @property
    def words(self) -> list[list[str]]:
        """What it printed, as the words of each line."""
        return [line.split() for line in self.out.splitlines()]


Mqns = Callable[..., Ended]


def run(*arguments: str, env: dict[str, str | None] | None = None) -> Ended:
    """Call it with nothing of this machine's environment."""
    result = CliRunner().invoke(app, list(arguments), env=ENVIRONMENT | (env or {}), prog_name="mqns")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="session")
def transport() -> None:
    """The servers' own choice: what a client sees does not depend on it."""


@pytest.fixture(scope="package")
def servers(new_server: Callable[[str, dict[str, str]], NameServer]) -> Iterator[list[NameServer]]:
    """Two that know nothing of each other."""
    started = [new_server(name, {}).start() for name in ("first", "second")]
    yield started
    for server in started:
        server.begin_stop()
    for server in started:
        server.stop()


@pytest.fixture
def scenes(servers: list[NameServer]) -> Iterator[list[Scene]]:
    """A scene on each of the two."""
    both = [Scene(server) for server in servers]
    yield both
    for scene in both:
        scene.clear()


@pytest.fixture
def ns(scenes: list[Scene]) -> Scene:
    """The scene on the first."""
    return scenes[0]


@pytest.fixture
def mqns(servers: list[NameServer]) -> Mqns:
    """`mqns` for the first server."""

    def call(*arguments: str, **more: Any) -> Ended:
        return run("-n", address(servers[0]), *arguments, **more)

    return call


@pytest.fixture
def mqns_both(servers: list[NameServer]) -> Mqns:
    """`mqns` for both."""

    def call(*arguments: str, **more: Any) -> Ended:
        return run("-n", ";".join(map(address, servers)), *arguments, **more)

    return call


def address(server: NameServer) -> str:
    """Return the address that peers get."""
    return f"127.0.0.1:{server.port}"


def http_side(server: NameServer) -> str:
    """The URL of its HTTP side."""

    def said() -> str:
        return server.said().partition(" http=127.0.0.1:")[2].partition(" ")[0]

    return f"http://127.0.0.1:{eventually(said)}"


@pytest.fixture
def unreachable() -> Iterator[str]:
    """The address of a port that is taken, and where no process listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that answers nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
