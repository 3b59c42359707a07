"""Requests that peers send, and a peer that wants us to go."""

import asyncio

import pytest

from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, encode
from testbed.network import Network, Peer
from testbed.virtual_time import now
from tests.mqns.remoting.scene import ASK, A, B, after, play

PUSH = Command(40, 0, ext={"consumerGroup": "cg1"}, body=b"body")


async def pushed(network: Network, client: AsyncRemotingClient, push: Command) -> list[Command]:
    """The answers to a push."""
    peer = network.serve(A)
    await client.invoke(A, ASK)
    peer.push(push)
    await asyncio.sleep(1)
    return [frame.command for frame in peer.frames if frame.command.is_response]


def test_a_push_is_handed_over_and_answered() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        came = []

        def handler(address: str, request: Command) -> Command:
            came.append((address, request))
            return request.reply(7, remark="well", ext={"a": "b"})

        client.on_push(40, handler)
        (answer,) = await pushed(network, client, PUSH)
        assert came == [(A, PUSH)]
        assert (answer.code, answer.opaque, answer.remark, answer.ext) == (7, 0, "well", {"a": "b"})

    play(scene)


def test_a_handler_without_a_response_is_a_success() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        client.on_push(40, lambda *_: None)
        (answer,) = await pushed(network, client, PUSH)
        assert answer.code == 0

    play(scene)


def test_a_request_without_a_handler_is_not_supported() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        client.on_push(41, lambda *_: None)
        (answer,) = await pushed(network, client, PUSH)
        assert (answer.code, answer.remark) == (3, " request type 40 not supported")

    play(scene)


def test_a_failing_handler_is_a_system_error(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        def handler(_: str, __: Command) -> None:
            raise ZeroDivisionError("by zero")

        client.on_push(40, handler)
        (answer,) = await pushed(network, client, PUSH)
        assert (answer.code, answer.remark) == (1, "ZeroDivisionError: by zero")
        assert (await client.invoke(A, ASK)).code == 0
        assert network.peers[A].connects == 1

    play(scene)
    assert "the handler of request 40 failed" in caplog.text


@pytest.mark.parametrize("handled", [True, False])
def test_a_oneway_push_is_not_answered(handled: bool) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        if handled:
            client.on_push(40, lambda _, request: request.reply(0))
        assert await pushed(network, client, Command(40, 0, 2)) == []

    play(scene)


def test_a_peer_that_pushes_and_does_not_read_is_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        client.on_push(40, lambda _, push: push.reply(0, body=bytes(1 << 16)))
        await client.invoke(A, ASK)
        peer.reads = False
        for _ in range(100):
            peer.push(PUSH)
        await asyncio.sleep(1)

    play(scene)
    assert caplog.text.count("the peer does not read from the connection") == 1


def test_a_push_with_the_opaque_of_a_call_is_no_answer_to_it() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        def answer(request: Command) -> bytes:
            return encode(Command(40, request.opaque, 2)) + encode(request.reply(17))

        network.serve(A, answer)
        assert (await client.invoke(A, ASK)).code == 17

    play(scene)


def going(peer: Peer, *, times: int) -> None:
    """Have a peer answer GO_AWAY so many times."""

    def answer(request: Command) -> Command:
        nonlocal times
        times -= 1
        return request.reply(ResponseCode.GO_AWAY if times >= 0 else 0, remark="please go away")

    peer.answer = answer


def test_go_away_is_followed_over_a_new_connection_once() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        going(peer, times=1)
        assert (await client.invoke(A, ASK)).code == 0
        await asyncio.sleep(1)
        assert [(frame.command.code, frame.connection) for frame in peer.frames] == [(105, 1), (105, 2)]
        assert len(peer.connections) == 1
        going(peer, times=2)
        assert (await client.invoke_async(A, ASK)).code == ResponseCode.GO_AWAY

    play(scene)


def test_others_still_get_their_answers_from_a_server_that_goes_away() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, after(2))
        waiting = client.invoke_async(A, ASK)
        await asyncio.sleep(0.5)
        going(peer, times=1)
        assert (await client.invoke(A, ASK)).code == 0
        assert len(peer.connections) == 2
        assert (await waiting).code == 0
        await asyncio.sleep(1)
        assert len(peer.connections) == 1

    play(scene)


def test_a_name_server_that_goes_away_is_left_for_another() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in (A, B):
            network.serve(address)
        await client.invoke(None, ASK)
        leaving = client.chosen_name_server
        going(network.peers[leaving or ""], times=99)
        assert (await client.invoke(None, ASK)).code == 0
        assert {leaving, client.chosen_name_server} == {A, B}

    play(scene, name_servers=(A, B))


def test_repeating_does_not_give_a_call_more_time() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        async def answer(request: Command) -> Command:
            await asyncio.sleep(2)
            return request.reply(ResponseCode.GO_AWAY)

        network.serve(A, answer)
        with pytest.raises(TimeoutError):
            await client.invoke(A, ASK, timeout_s=3)
        assert now() == 3

    play(scene)


def test_go_away_is_an_answer_like_others_where_the_option_says_so() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        going(network.serve(A), times=1)
        assert (await client.invoke(A, ASK)).code == ResponseCode.GO_AWAY
        assert network.peers[A].connects == 1

    play(scene, RemotingOptions(follow_go_away=False))
