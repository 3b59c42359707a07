"""The client over real sockets: TLS, and peers that are wrong in ways only sockets can be."""

import asyncio
import gc
import itertools
import socket
import ssl
import struct
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from mqns.errors import CallTimeout, ConnectError, ConnectionClosed, SendError
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from mqns.remoting.tls import tls_context
from tests.mqns.remoting.scene import ASK
from tests.mqns.remoting.servers import Serve, answering, deaf, served
from worker.transport.self_signed import self_signed_pem

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
new_event_loop = asyncio.new_event_loop


@pytest.fixture(autouse=True, params=LOOPS)
def loop_factory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs on both event loops."""
    monkeypatch.setattr(f"{__name__}.new_event_loop", LOOPS[request.param])


def play(
    serve: Serve,
    scene: Callable[[str, AsyncRemotingClient], Awaitable[None]],
    *,
    tls: ssl.SSLContext | None = None,
    options: RemotingOptions | None = None,
) -> None:
    """Run a scene with a server of this kind; neither tasks nor sockets of the client may be left."""

    async def played(address: str) -> None:
        async with AsyncRemotingClient(options) as client:
            await scene(address, client)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"left behind: {left}"

    complaints: list[str] = []
    gc.collect()  # what other tests left is theirs
    with served(serve, tls) as address, warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always", ResourceWarning)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
            runner.run(played(address))
        gc.collect()
        assert not [warning.message for warning in unclosed]
    assert not complaints


async def resetting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ends the connection as a crashed host does."""
    await reader.read(1)
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def test_big_and_many_at_once() -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        bodies = [bytes([size % 251]) * size for size in (0, 1, 1000, 1 << 20, 10 << 20)] * 4
        calls = [client.invoke(address, Request(103, body=body), timeout_s=30) for body in bodies]
        assert [answer.body for answer in await asyncio.gather(*calls)] == bodies

    play(answering, scene)


def test_a_reset_fails_calls_at_once() -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        for _ in range(3):
            with pytest.raises(ConnectionClosed):
                await client.invoke(address, ASK, timeout_s=30)

    play(resetting, scene)


def test_a_deaf_peer_costs_the_time_of_a_call_and_no_more() -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        with pytest.raises(CallTimeout):
            await client.invoke(address, ASK, timeout_s=0.2)
        await client.invoke_oneway(address, Request(103, body=bytes(15 << 20)), timeout_s=30)
        with pytest.raises(SendError):
            await client.invoke(address, ASK, timeout_s=0.2)

    play(deaf, scene)


def test_a_peer_that_stops_sending_but_not_reading() -> None:
    async def half_closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write_eof()
        while await reader.read(1 << 16):
            pass

    async def scene(address: str, client: AsyncRemotingClient) -> None:
        with pytest.raises((ConnectionClosed, SendError)):
            await client.invoke(address, ASK, timeout_s=30)

    play(half_closing, scene)


def test_a_wall_clock_that_jumps_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = itertools.cycle([0.0, 4e9, 1.7e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(jumps) * 1e9))

    async def scene(address: str, client: AsyncRemotingClient) -> None:
        for _ in range(100):
            assert (await client.invoke(address, ASK, timeout_s=30)).code == 0
            assert (await client.invoke_async(address, ASK, timeout_s=30)).code == 0
        async with asyncio.TaskGroup() as calls:
            for _ in range(100):
                calls.create_task(client.invoke(address, ASK, timeout_s=30))

    play(answering, scene)


def test_an_unreachable_peer() -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        with pytest.raises(ConnectError, match="not connected: Connection refused"):
            await client.invoke("127.0.0.1:1", ASK)
        with pytest.raises(ConnectError):
            await client.invoke(f"{'a' * 64}.invalid:1", ASK)
        assert (await client.invoke(address, ASK)).code == 0

    play(answering, scene)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for it."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(self_signed_pem())
    return path


@pytest.fixture(scope="module")
def server_tls(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def test_tls_with_a_certificate_that_is_trusted(pem: Path, server_tls: ssl.SSLContext) -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        answer = await client.invoke(address, Request(103, body=bytes(1 << 20)))
        assert len(answer.body) == 1 << 20

    play(answering, scene, tls=server_tls, options=RemotingOptions(tls=tls_context(trust=pem)))


def test_tls_without_looking_at_the_certificate(server_tls: ssl.SSLContext) -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        assert (await client.invoke(address, ASK)).code == 0

    play(answering, scene, tls=server_tls, options=RemotingOptions(tls=tls_context(auth_server=False)))


def test_tls_with_a_certificate_that_is_not_trusted(server_tls: ssl.SSLContext) -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.invoke(address, ASK)

    play(answering, scene, tls=server_tls, options=RemotingOptions(tls=tls_context()))


def test_a_peer_may_ask_for_our_certificate(pem: Path, server_tls: ssl.SSLContext) -> None:
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    strict.load_cert_chain(pem)
    strict.load_verify_locations(pem)
    strict.verify_mode = ssl.CERT_REQUIRED

    async def scene(address: str, client: AsyncRemotingClient) -> None:
        assert (await client.invoke(address, ASK)).code == 0

    ours = tls_context(trust=pem, certificate=pem)
    play(answering, scene, tls=strict, options=RemotingOptions(tls=ours))


def test_tls_may_be_for_some_addresses_only(pem: Path, server_tls: ssl.SSLContext) -> None:
    asked: list[str] = []

    def chosen(address: str) -> ssl.SSLContext | None:
        asked.append(address)
        return None

    async def scene(address: str, client: AsyncRemotingClient) -> None:
        assert (await client.invoke(address, ASK)).code == 0
        assert asked == [address]

    play(answering, scene, options=RemotingOptions(tls=chosen))


def test_a_plain_peer_where_tls_is_expected_is_given_up(pem: Path) -> None:
    async def scene(address: str, client: AsyncRemotingClient) -> None:
        with pytest.raises(ConnectError, match=r"within 0\.2 s"):
            await client.invoke(address, ASK)

    play(deaf, scene, options=RemotingOptions(tls=tls_context(trust=pem), connect_timeout_s=0.2))


def test_unusable_files_are_errors_at_once(tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    with pytest.raises(FileNotFoundError):
        tls_context(trust=tmp_path / "missing.pem")
    with pytest.raises(ssl.SSLError):
        tls_context(trust=nonsense)


def test_close_ends_after_a_connect_that_came_too_late() -> None:
    """The connection is there in the very moment in which its time is over."""

    async def scene(address: str, _: AsyncRemotingClient) -> None:
        for turns in [*range(7)] * 6:
            async with (
                asyncio.timeout(5),
                AsyncRemotingClient(RemotingOptions(connect_timeout_s=0.002)) as late,
            ):
                call = asyncio.ensure_future(late.invoke(address, ASK))
                for _turn in range(turns):
                    await asyncio.sleep(0)
                time.sleep(0.003)
                await asyncio.gather(call, return_exceptions=True)

    play(answering, scene)
