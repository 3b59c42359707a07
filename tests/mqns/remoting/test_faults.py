"""Peers that misbehave, and calls that are given up: errors, nothing left behind, and all well afterwards."""

import asyncio
import contextlib
import gc
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqns.errors import CallTimeout, ConnectError, ConnectionClosed, RemotingError
from mqns.remoting.connection import ClientConnection
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from rocketmq_remoting.command import Command, encode
from testbed.network import HIGH_WATER, Network
from testbed.virtual_time import now
from tests.mqns.remoting.scene import ASK, A, B, C, after, play, silent

GARBAGE = [
    pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="http"),
    pytest.param(b"\x00\x00\x00\x00", id="no room for a header"),
    pytest.param(b"\xff\xff\xff\xff\x00\x00\x00\x00", id="negative length"),
    pytest.param(b"\x7f\xff\xff\xff\x00\x00\x00\x00", id="too big"),
    pytest.param(b'\x00\x00\x00\x0b\x00\x00\x00\x07{"code"', id="half a header"),
    pytest.param(b"\x00\x00\x00\x06\x09\x00\x00\x02{}", id="serialize type 9"),
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_ends_the_connection_with_an_error_that_says_so(garbage: bytes) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, lambda _: garbage)
        with pytest.raises(ConnectionClosed, match="the peer sent no frame"):
            await client.invoke(A, ASK)
        assert now() == 0
        peer.answer = after(0)
        assert (await client.invoke(A, ASK)).code == 0
        assert peer.connects == 2

    play(scene)


@example([], b"\x00\x00g")
@given(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=4), st.binary(max_size=40))
def test_whatever_bytes_come_a_call_ends_and_the_next_one_is_answered(
    changes: list[tuple[int, int]], behind: bytes
) -> None:
    def answer(request: Command) -> bytes:
        frame = bytearray(encode(request.reply(0, remark="remark", ext={"a": "b"}, body=b"body")) + behind)
        for at, value in changes:
            frame[at % len(frame)] = value
        return bytes(frame)

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, answer)
        with contextlib.suppress(RemotingError):
            await client.invoke(A, ASK)
        peer.answer = after(0)
        # bytes that were left over can still prove to be no frame, or the begin of one that never ends
        with contextlib.suppress(ConnectionClosed, CallTimeout):
            assert (await client.invoke(A, ASK)).code == 0
        assert (await client.invoke(A, ASK, timeout_s=9)).code == 0
        assert now() <= 9

    play(scene)


def test_what_comes_before_garbage_counts() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, lambda request: encode(request.reply(17)) + b"\x00\x00\x00\x00")
        assert (await client.invoke(A, ASK)).code == 17

    play(scene)


def test_half_an_answer_is_none() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, lambda request: encode(request.reply(0, body=bytes(1000)))[:-1])
        with pytest.raises(CallTimeout):
            await client.invoke(A, ASK)

    play(scene)


def test_an_answer_to_nothing_is_dropped() -> None:
    def answer(request: Command) -> bytes:
        strangers = [request.opaque + shift for shift in (1, -1, 2**30) if request.opaque is not None]
        return b"".join(encode(Command(1, opaque, 1)) for opaque in strangers) + encode(request.reply(0))

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, answer)
        assert [(await client.invoke(A, ASK)).code for _ in range(3)] == [0, 0, 0]
        assert peer.connects == 1

    play(scene)


def test_the_second_of_two_answers_is_dropped() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, lambda request: encode(request.reply(0)) + encode(request.reply(1)))
        assert [(await client.invoke(A, ASK)).code for _ in range(3)] == [0, 0, 0]
        network.peers[A].push(Command(1, 0, 1))
        assert (await client.invoke_async(A, ASK)).code == 0

    play(scene)


def test_a_late_answer_is_dropped() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, after(4))
        with pytest.raises(CallTimeout):
            await client.invoke(A, ASK)
        peer.answer = lambda request: request.reply(17)
        assert (await client.invoke(A, ASK)).code == 17
        await asyncio.sleep(3)
        assert peer.connects == 1

    play(scene, RemotingOptions(close_on_timeout=False))


def test_no_peer_can_answer_for_another() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        asked: list[Command] = []
        network.serve(A, asked.append)
        stranger = network.serve(B)
        await client.invoke(B, ASK)
        call = asyncio.create_task(client.invoke(A, ASK))
        await asyncio.sleep(1)
        stranger.push(asked[0].reply(0))
        with pytest.raises(CallTimeout):
            await call

    play(scene)


def test_a_vanished_peer_fails_calls_at_once_and_is_found_again() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, silent)
        calls = [client.invoke_async(A, ASK) for _ in range(3)]
        await asyncio.sleep(1)
        peer.vanish()
        for call in calls:
            with pytest.raises(ConnectionClosed, match="Connection reset by peer"):
                await call
        assert now() == 1
        with pytest.raises(ConnectError, match="refused"):
            await client.invoke(A, ASK)
        peer.refuses, peer.answer = False, after(0)
        assert (await client.invoke(A, ASK)).code == 0

    play(scene)


def test_calls_to_others_go_on() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, silent)
        network.serve(B, after(2))
        calls = [client.invoke_async(address, ASK) for address in (A, B)]
        await asyncio.sleep(1)
        network.peers[A].vanish()
        with pytest.raises(ConnectionClosed):
            await calls[0]
        assert (await calls[1]).code == 0

    play(scene)


def test_a_half_open_connection_is_left_after_one_time_out() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        await client.invoke(A, ASK)
        peer.reads = False
        with pytest.raises(CallTimeout):
            await client.invoke(A, ASK, timeout_s=2)
        peer.reads = True
        assert (await client.invoke(A, ASK)).code == 0
        assert (peer.connects, now()) == (2, 2)

    play(scene)


def test_a_slow_peer_gets_all_the_time_a_call_has() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, after(1.5))
        peer.connect_s = 1.25
        assert (await client.invoke(A, ASK, timeout_s=3)).code == 0
        assert now() == 2.75

    play(scene)


def test_a_peer_that_asks_without_reading_is_not_answered_endlessly() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        client.on_push(40, lambda _, request: request.reply(0, body=bytes(HIGH_WATER)))
        await client.invoke(A, ASK)
        peer.reads = False
        for opaque in range(100):
            peer.push(Command(40, opaque))
        await asyncio.sleep(1)
        assert peer.connections[0].get_write_buffer_size() < 3 * HIGH_WATER

    play(scene)


def test_the_list_of_name_servers_may_change_under_calls() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in (A, B, C):
            network.serve(address, after(0.05))
        rng = random.Random(5)

        async def ask() -> None:
            for _ in range(50):
                assert (await client.invoke(None, ASK)).code == 0

        async def change() -> None:
            for _ in range(100):
                client.set_name_servers(rng.sample([A, B, C], rng.randint(1, 3)))
                await asyncio.sleep(0.03)

        await asyncio.gather(change(), *(ask() for _ in range(10)))
        assert network.open_connections <= 3
        client.set_name_servers([C])
        await client.invoke(None, ASK)
        await asyncio.sleep(1)
        assert client.chosen_name_server == C

    play(scene, name_servers=(A, B))


def test_whatever_peers_do_a_call_ends_and_nothing_is_left() -> None:
    """Some thousand calls to peers that change their ways at random."""

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        rng = random.Random(7)
        peers = [network.serve(address) for address in (A, B, C)]
        ways = [silent, after(0), after(1), after(4), lambda _: b"\x00\x00\x00\x00", lambda r: r.reply(1500)]

        async def trouble() -> None:
            for _ in range(300):
                peer = rng.choice(peers)
                peer.answer = rng.choice(ways)
                peer.connect_s = rng.choice([0, 0, 0.5, 2, None])
                peer.refuses = rng.random() < 0.2
                peer.take() if rng.random() < 0.7 else setattr(peer, "reads", False)
                if rng.random() < 0.3:
                    peer.cut(rng.choice([None, ConnectionResetError()]))
                await asyncio.sleep(rng.random())

        ends: dict[str, int] = {}

        async def ask() -> None:
            for _ in range(100):
                address, timeout_s = rng.choice([A, B, C, None]), rng.choice([0.5, 2, 5])
                request = Request(105, body=bytes(rng.choice([0, 0, HIGH_WATER])))
                began = now()
                try:
                    how = rng.choice([client.invoke, client.invoke_async, client.invoke_oneway])
                    await how(address, request, timeout_s=timeout_s)
                    end = "answered"
                except RemotingError as error:
                    end = type(error).__name__
                ends[end] = ends.get(end, 0) + 1
                assert now() - began <= timeout_s + 2

        await asyncio.gather(trouble(), *(ask() for _ in range(20)))
        errors = {"ConnectError", "SendError", "CallTimeout", "ConnectionClosed", "TooBusy"}
        assert set(ends) == errors | {"answered"}
        for peer in peers:
            peer.answer, peer.connect_s, peer.refuses = after(0), 0, False
            peer.cut()
            peer.take()
        assert [(await client.invoke(address, ASK)).code for address in (A, B, C, None)] == [0, 0, 0, 0]

    play(scene, RemotingOptions(async_permits=10, oneway_permits=10), name_servers=(A, B, C))


def test_nothing_is_kept_of_calls_and_connections_that_are_over() -> None:
    def kept() -> int:
        gc.collect()
        return sum(isinstance(thing, ClientConnection | asyncio.Future) for thing in gc.get_objects())

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        before = kept()
        for part in range(1, 100):
            address = f"127.0.0.{part}:9876"
            with pytest.raises(ConnectError):
                await client.invoke(address, ASK)
            peer = network.serve(address)
            await client.invoke(address, ASK)
            peer.answer = silent
            with pytest.raises(CallTimeout):
                await client.invoke_async(address, ASK, timeout_s=1)
        assert kept() > before + 20
        await asyncio.sleep(200)
        assert kept() < before + 5

    play(scene)


Ask = Callable[[AsyncRemotingClient], Coroutine[Any, Any, object]]


async def _async(client: AsyncRemotingClient) -> None:
    await client.invoke_async(A, ASK, timeout_s=9)


CALLS: dict[str, Ask] = {
    "call": lambda client: client.invoke(A, ASK, timeout_s=9),
    "call without address": lambda client: client.invoke(None, ASK, timeout_s=9),
    "invoke_async": _async,
    "oneway": lambda client: client.invoke_oneway(A, ASK, timeout_s=9),
}


@pytest.mark.parametrize("ask", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("at", [step / 4 for step in range(14)])
@pytest.mark.parametrize("steps", range(6))
def test_a_call_may_be_cancelled_at_any_moment(ask: Ask, at: float, steps: int) -> None:
    """Connecting takes 0.75 s, writing waits for room for a second more, the answer for another."""

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, after(1))
        peer.connect_s = 0.75
        peer.reads = False
        asyncio.get_running_loop().call_later(1.75, peer.take)
        first = client.invoke_async(A, Request(103, body=bytes(2 * HIGH_WATER)), timeout_s=20)
        call = asyncio.create_task(ask(client))
        await asyncio.sleep(at)
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        assert (await first).code == 0
        assert ((await client.invoke(A, ASK)).code, peer.connects) == (0, 1)
        await client.invoke_oneway(A, ASK, timeout_s=0.5)  # there are permits, one for each kind
        assert (await client.invoke_async(A, ASK, timeout_s=2)).code == 0

    play(scene, RemotingOptions(async_permits=2, oneway_permits=1), name_servers=(A,))


@pytest.mark.parametrize("at", [step / 4 for step in range(14)])
@pytest.mark.parametrize("steps", range(6))
def test_a_client_may_be_closed_at_any_moment(at: float, steps: int) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, after(1))
        peer.connect_s = 0.75
        peer.reads = False
        asyncio.get_running_loop().call_later(1.75, peer.take)
        calls = [asyncio.create_task(ask(client)) for ask in CALLS.values()]
        await asyncio.sleep(at)
        for _ in range(steps):
            await asyncio.sleep(0)
        began = now()
        await client.close()
        assert now() - began <= 1
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert result is None or isinstance(result, Command | ConnectionClosed | RemotingError)
        assert network.open_connections == 0

    play(scene, name_servers=(A,))
