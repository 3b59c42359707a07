"""An agent's own port, over real sockets: probes and pushes of name servers, clients, and others."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import pytest

from mqns.broker.agent import AsyncBrokerAgent
from mqns.broker.config import BrokerConfig
from mqns.broker.events import MinBrokerIdChanged
from mqns.broker.server import CONNECTIONS_MOST, HELD_MOST, IDLE_S, BrokerServerConnection, respond
from mqns.errors import RemotingError
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FrameReader
from testbed import virtual_time
from testbed.ports import free_port
from tests.mqns.broker.scene import RecordingListener

HOST = "127.0.0.1"


def listening(listener: RecordingListener, version: str = "5.5.0") -> AsyncBrokerAgent:
    config = BrokerConfig(
        broker_name="broker-a",
        broker_ip1=HOST,
        listen_port=free_port(),
        listen=True,
        bind_address=HOST,
        version=version,
    )
    return AsyncBrokerAgent(config, listener=listener)


def met(
    play: Callable[[AsyncBrokerAgent, AsyncRemotingClient], Awaitable[None]],
    listener: RecordingListener | None = None,
    version: str = "5.5.0",
) -> None:
    """Play with an agent that listens and a client."""

    async def both() -> None:
        async with (
            listening(listener or RecordingListener(), version) as agent,
            AsyncRemotingClient() as client,
        ):
            await play(agent, client)

    asyncio.run(both())


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (RequestCode.HEART_BEAT, 0),
        (RequestCode.UNREGISTER_CLIENT, 0),
        (310, 3),
        (RequestCode.REGISTER_BROKER, 3),
    ],
)
def test_what_clients_ask_is_answered(code: int, answered: int) -> None:
    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        answer = await client.invoke(agent.config.broker_addr, Request(code))
        assert answer.code == answered
        assert answer.remark == (f" request type {code} not supported" if answered else None)

    met(play)


@pytest.mark.parametrize(("version", "answered"), [("5.5.0", [0, 1]), ("4.9.7", [3, 3])])
def test_a_push_is_taken_as_its_release_would(version: str, answered: list[int]) -> None:
    listener = RecordingListener()

    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        for smallest, code in zip(("1", "one"), answered, strict=True):
            ext = {"minBrokerId": smallest, "minBrokerAddr": "b:1", "haBrokerAddr": "h:1"}
            push = Request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, ext)
            assert (await client.invoke(agent.config.broker_addr, push)).code == code

    met(play, listener, version)
    changes = [MinBrokerIdChanged(1, "b:1", None, "h:1")] if version == "5.5.0" else []
    assert listener.of(MinBrokerIdChanged) == changes


def test_a_oneway_request_is_not_answered() -> None:
    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        reader, writer = await asyncio.open_connection(HOST, agent.config.listen_port)
        writer.write(
            encode(Command(310, 1, flag=2)) + encode(Command(0, 2, flag=1)) + encode(Command(310, 3))
        )
        frames = FrameReader()
        while (first := frames.next_command()) is None:
            frames.feed(await reader.read(1 << 16))
        assert (first.opaque, first.code) == (3, 3)
        writer.close()

    met(play)


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x00", b"\xff" * 20, b"\x16\x03\x01" * 9]
)
def test_a_peer_that_sends_no_frame_is_disconnected_and_others_are_not(data: bytes) -> None:
    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        reader, writer = await asyncio.open_connection(HOST, agent.config.listen_port)
        writer.write(data)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0

    met(play)


def test_a_peer_that_does_not_read_is_not_read_either() -> None:
    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        requests = encode(Command(99, 1, ext={"a": "b" * 1000})) * 1000
        with socket.create_connection((HOST, agent.config.listen_port)) as peer:
            peer.setblocking(False)
            sent = refusals = 0
            while refusals < 20:
                try:
                    sent += peer.send(memoryview(requests)[sent % len(requests) :])
                    refusals = 0
                except BlockingIOError:
                    refusals += 1
                    await asyncio.sleep(0.01)
                assert sent < 64 << 20, "all is read, and answered into memory"
            assert sent > len(requests)
        assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0

    met(play)


class Line(asyncio.Transport):
    """A connection that only notes when it was cut."""

    def __init__(self) -> None:
        super().__init__()
        self.cut_at: float | None = None

    def abort(self) -> None:
        self.cut_at = virtual_time.now()


def test_a_peer_silent_for_120_s_is_disconnected() -> None:
    async def play() -> None:
        line, doors = Line(), set[BrokerServerConnection]()
        door = BrokerServerConnection(respond, doors)
        door.connection_made(line)
        assert doors == {door}
        await asyncio.sleep(100)
        door.data_received(encode(Command(99, 1, flag=2)))
        await asyncio.sleep(1000)
        assert line.cut_at == 100 + IDLE_S
        door.connection_lost(None)
        assert doors == set()

    virtual_time.run(play())


def test_connections_end_with_the_agent() -> None:
    async def play() -> None:
        async with AsyncRemotingClient() as client:
            async with listening(RecordingListener()) as agent:
                assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0
            with pytest.raises(RemotingError):
                await client.invoke(agent.config.broker_addr, Request(34))

    asyncio.run(play())


def test_a_port_that_is_taken_is_an_error_and_no_event_is_reported() -> None:
    async def play() -> None:
        listener = RecordingListener()
        agent = listening(listener)
        taken = socket.create_server((HOST, agent.config.listen_port))
        with taken, pytest.raises(OSError, match="address already in use"):
            await agent.__aenter__()
        assert listener.events == []

    asyncio.run(play())


def test_peers_that_send_large_frames_slowly_take_no_more_than_a_bound() -> None:
    piece = 1 << 20
    begun = (12 << 20).to_bytes(4, "big") + b"\0\0\0\x40" + bytes(piece)

    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        peers = [await asyncio.open_connection(HOST, agent.config.listen_port) for _ in range(30)]
        for _, writer in peers:
            writer.write(begun)
        ended = [asyncio.create_task(ends(reader)) for reader, _ in peers]
        await asyncio.wait(ended, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0
        await asyncio.sleep(0.2)
        left = len(peers) - sum(task.done() for task in ended)
        assert HELD_MOST // piece - 3 <= left <= HELD_MOST // piece
        for _, writer in peers:
            writer.close()

    met(play)


def test_of_too_many_connections_those_that_were_silent_longest_are_closed() -> None:
    async def play(agent: AsyncBrokerAgent, client: AsyncRemotingClient) -> None:
        assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0
        peers = [
            await asyncio.open_connection(HOST, agent.config.listen_port) for _ in range(CONNECTIONS_MOST - 1)
        ]
        assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0
        more = (asyncio.open_connection(HOST, agent.config.listen_port) for _ in range(100))
        peers += await asyncio.gather(*more)
        await asyncio.wait_for(asyncio.gather(*(ends(reader) for reader, _ in peers[:100])), 5)
        assert (await client.invoke(agent.config.broker_addr, Request(34))).code == 0
        for _, writer in peers:
            writer.close()

    met(play)


async def ends(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
