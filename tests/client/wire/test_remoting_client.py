"""Calls: their time, their answers, their end. On a virtual clock and a network in memory."""

import asyncio

import pytest

from client.errors import CallTimeout, ConnectError, ConnectionClosed
from client.wire.options import RemotingOptions
from client.wire.remoting_client import RemotingClient
from client.wire.request import Request
from remoting.command import Command
from tests.harness.network import Network
from tests.harness.virtual_time import now, run

A = "127.0.0.1:9876"
ASK = Request(105, {"topic": "TA"})


def silent(_: Command) -> None:
    """Answers nothing."""


def test_a_call_is_answered() -> None:
    async def play() -> None:
        network = Network()
        network.serve(A, lambda request: request.reply(17, remark="no", ext={"a": "b"}, body=b"body"))
        async with RemotingClient(connect=network.connect) as client:
            answer = await client.call(A, ASK)
        assert (answer.code, answer.remark, answer.ext, answer.body) == (17, "no", {"a": "b"}, b"body")
        assert network.open_connections == 0

    run(play())


def test_calls_are_pipelined_over_one_connection() -> None:
    async def answer(request: Command) -> Command:
        await asyncio.sleep(1)
        return request.reply(request.code)

    async def play() -> None:
        network = Network()
        peer = network.serve(A, answer)
        peer.connect_s = 1
        async with RemotingClient(connect=network.connect) as client:
            answers = await asyncio.gather(*(client.call(A, Request(code)) for code in range(100)))
        assert [answer.code for answer in answers] == list(range(100))
        assert (peer.connects, now()) == (1, 2)

    run(play())


def test_errors_tell_how_far_a_call_came() -> None:
    async def play() -> None:
        network = Network()
        async with RemotingClient(connect=network.connect) as client:
            with pytest.raises(ConnectError, match="refused"):
                await client.call(A, ASK)
            peer = network.serve(A, silent)
            with pytest.raises(CallTimeout, match="no answer within 2 s"):
                await client.call(A, ASK, timeout_s=2)
            assert now() == 2
            call = asyncio.create_task(client.call(A, ASK))
            await asyncio.sleep(1)
            peer.cut()
            with pytest.raises(ConnectionClosed, match="closed by the peer"):
                await call
            assert now() == 3

    run(play())


def test_a_connect_that_never_ends_is_given_up_for_all_who_wait() -> None:
    async def play() -> None:
        network = Network()
        network.serve(A).connect_s = None
        async with RemotingClient(connect=network.connect) as client:
            short, long = await asyncio.gather(
                client.call(A, ASK, timeout_s=1), client.call(A, ASK, timeout_s=9), return_exceptions=True
            )
            assert isinstance(short, CallTimeout)
            assert isinstance(long, ConnectError)
            assert now() == 3

    run(play())


def test_an_async_call_is_answered_or_fails_once() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with RemotingClient(connect=network.connect) as client:
            assert (await client.call_async(A, ASK)).code == 0
            peer.answer = silent
            with pytest.raises(CallTimeout):
                await client.call_async(A, ASK, timeout_s=5)
            assert 5 <= now() <= 7

    run(play())


def test_oneway_requests_are_written_even_when_the_client_closes_at_once() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with RemotingClient(connect=network.connect) as client:
            await client.oneway(A, Request(904))
        (frame,) = peer.frames
        assert (frame.command.code, frame.command.flag, frame.command.language) == (904, 2, 3)

    run(play())


def test_closing_ends_the_calls() -> None:
    async def play() -> None:
        network = Network()
        network.serve(A, silent)
        client = RemotingClient(RemotingOptions(), connect=network.connect)
        waiting = client.call_async(A, ASK)
        await asyncio.sleep(1)
        await client.close()
        with pytest.raises(ConnectionClosed, match="this client is closed"):
            await waiting
        with pytest.raises(ConnectionClosed, match="this client is closed"):
            await client.call(A, ASK)
        assert network.open_connections == 0

    run(play())
