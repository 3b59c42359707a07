"""testbed/network.py: peers in memory."""

import asyncio
from collections.abc import Awaitable

import pytest

from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FrameReader
from testbed.network import HIGH_WATER, Network, Transport
from testbed.virtual_time import START_S, now, run

A = "127.0.0.1:9876"


class Client(asyncio.Protocol):
    """Records what the transport reports."""

    def __init__(self) -> None:
        self.reader = FrameReader()
        self.came: list[tuple[float, int | None]] = []
        self.reported: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        while (command := self.reader.next_command()) is not None:
            self.came.append((now(), command.opaque))

    def pause_writing(self) -> None:
        self.reported.append("pause")

    def resume_writing(self) -> None:
        self.reported.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.reported.append(f"lost {type(error).__name__}")


async def connected(network: Network) -> tuple[Transport, Client]:
    transport, client = await network.connect("127.0.0.1", 9876, Client, None)
    return transport, client


def test_requests_are_answered_and_noted() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        transport, client = await connected(network)
        await asyncio.sleep(5)
        transport.write(encode(Command(105, 1)) + encode(Command(34, 2, 2)))
        await asyncio.sleep(1)
        assert client.came == [(5, 1)], "a oneway request has no answer"
        assert [(frame.at - START_S, frame.command.code) for frame in peer.frames] == [(5, 105), (5, 34)]

    run(play())


def test_answers_may_take_their_time_and_come_in_any_order() -> None:
    async def answer(request: Command) -> Command:
        await asyncio.sleep(10 - request.code)
        return request.reply(0)

    def soon_or_later(request: Command) -> Command | Awaitable[Command]:
        return answer(request)

    async def play() -> None:
        network = Network()
        network.serve(A, soon_or_later)
        transport, client = await connected(network)
        transport.write(encode(Command(1, 1)) + encode(Command(2, 2)))
        await asyncio.sleep(20)
        assert client.came == [(8, 2), (9, 1)]

    run(play())


def test_connects_are_slow_refused_or_for_ever() -> None:
    async def play() -> None:
        network = Network()
        with pytest.raises(ConnectionRefusedError):
            await connected(network)
        peer = network.serve(A)
        peer.connect_s = 2
        await connected(network)
        assert (now(), network.open_connections, peer.connects) == (2, 1, 1)
        peer.connect_s = None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await connected(network)
        peer.refuses, peer.connect_s = True, 0
        with pytest.raises(ConnectionRefusedError):
            await connected(network)

    run(play())


def test_a_peer_that_does_not_read_stops_the_writer() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        transport, client = await connected(network)
        peer.reads = False
        transport.write(encode(Command(1, 1, body=bytes(HIGH_WATER))))
        await asyncio.sleep(1)
        assert (client.reported, peer.frames) == (["pause"], [])
        peer.take()
        await asyncio.sleep(1)
        assert (client.reported, peer.codes) == (["pause", "resume"], [1])

    run(play())


def test_what_was_written_arrives_before_an_orderly_end_and_not_before_an_abort() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        for orderly in (True, False):
            transport, client = await connected(network)
            transport.write(encode(Command(1, 1)))
            if orderly:
                transport.close()
            else:
                transport.abort()
            await asyncio.sleep(1)
            assert (client.reported, network.open_connections) == (["lost NoneType"], 0)
        assert peer.codes == [1]

    run(play())


def test_a_cut_connection_is_reported_to_the_client() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        _, client = await connected(network)
        peer.vanish()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert client.reported == ["lost ConnectionResetError"]
        with pytest.raises(ConnectionRefusedError):
            await connected(network)

    run(play())
