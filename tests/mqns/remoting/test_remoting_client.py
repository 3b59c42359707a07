"""Calls: their time, their answers, their end."""

import asyncio

import pytest

from mqns.errors import AddressError, CallTimeout, ConnectError, ConnectionClosed, SendError, TooBusy
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from rocketmq_remoting.command import Command, SerializeType
from rocketmq_remoting.frame import FRAME_MAX_LENGTH
from testbed.network import HIGH_WATER, Network
from testbed.virtual_time import now
from tests.mqns.remoting.scene import ASK, A, after, play, silent

BIG = Request(103, body=bytes(2 * HIGH_WATER))


def test_a_call_is_answered() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, lambda request: request.reply(17, remark="no", ext={"a": "b"}, body=b"body"))
        answer = await client.invoke(A, ASK)
        assert (answer.code, answer.remark, answer.ext, answer.body) == (17, "no", {"a": "b"}, b"body")

    play(scene)


@pytest.mark.parametrize("kind", SerializeType)
def test_requests_name_language_and_version(kind: SerializeType) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        await client.invoke(A, Request(105, {"topic": "TA"}, b"body"))
        await client.invoke_oneway(A, Request(904))
        await asyncio.sleep(0)
        asked, oneway = (frame.command for frame in peer.frames)
        assert (asked.code, asked.flag, asked.version, asked.language) == (105, 0, 373, 0)
        assert (asked.ext, asked.body, asked.serialize_type) == ({"topic": "TA"}, b"body", kind)
        assert (oneway.code, oneway.flag, oneway.serialize_type) == (904, 2, kind)
        assert asked.opaque is not None
        assert oneway.opaque == asked.opaque + 1

    play(scene, RemotingOptions(version=373, language=0, serialize_type=kind))


@pytest.mark.parametrize("kind", SerializeType)
def test_answers_are_read_in_whichever_encoding_they_come(kind: SerializeType) -> None:
    def answer(request: Command) -> Command:
        return Command(17, request.opaque, 1, ext={"a": "b"}, body=b"body", serialize_type=kind)

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, answer)
        assert (await client.invoke(A, ASK)).ext == {"a": "b"}

    play(scene)


def test_calls_are_pipelined_over_one_connection() -> None:
    async def answer(request: Command) -> Command:
        await asyncio.sleep(100 - request.code)  # the last one is answered first
        return request.reply(request.code)

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, answer)
        peer.connect_s = 1
        answers = await asyncio.gather(*(client.invoke(A, Request(c), timeout_s=200) for c in range(100)))
        assert [answer.code for answer in answers] == list(range(100))
        assert (peer.connects, now()) == (1, 101)

    play(scene)


def test_a_call_without_answer_ends_in_time_and_closes_the_connection() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, silent)
        with pytest.raises(CallTimeout, match="no answer within 2 s") as error:
            await client.invoke(A, ASK, timeout_s=2)
        assert isinstance(error.value, TimeoutError)
        assert (error.value.address, now()) == (A, 2)
        await asyncio.sleep(0)
        assert peer.connections == []

    play(scene)


def test_a_time_out_leaves_the_connection_where_the_option_says_so() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, silent)
        with pytest.raises(CallTimeout):
            await client.invoke(A, ASK, timeout_s=2)
        peer.answer = after(1)
        await client.invoke(A, ASK)
        assert peer.connects == 1

    play(scene, RemotingOptions(close_on_timeout=False))


def test_a_call_that_connecting_left_hardly_any_time_does_not_close_the_connection() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, silent)
        peer.connect_s = 1.95
        with pytest.raises(CallTimeout, match="no answer"):
            await client.invoke(A, ASK, timeout_s=2)
        await asyncio.sleep(0)
        assert len(peer.connections) == 1

    play(scene)


def test_a_connect_that_never_ends_is_given_up_for_all_callers() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.connect_s = None
        short, equal, long = await asyncio.gather(
            client.invoke(A, ASK, timeout_s=1),
            client.invoke(A, ASK, timeout_s=3),
            client.invoke(A, ASK, timeout_s=9),
            return_exceptions=True,
        )
        assert isinstance(short, CallTimeout)
        assert isinstance(equal, ConnectError)
        assert isinstance(long, ConnectError)
        assert "not connected within 3 s" in str(long)
        assert (now(), peer.connects) == (3, 1)

    play(scene)


def test_after_a_failed_connect_the_next_call_connects_again() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        with pytest.raises(ConnectError, match=r"127\.0\.0\.1:9876: not connected: .*refused"):
            await client.invoke(A, ASK)
        network.serve(A)
        assert (await client.invoke(A, ASK)).code == 0

    play(scene)


@pytest.mark.parametrize("address", ["", "host", "host:", "host:port", ":1", "a:65536", "a b:1", "a;b:1"])
def test_an_address_that_is_none_is_an_error_before_anything_happens(address: str) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        with pytest.raises(AddressError, match="in the address"):
            await client.invoke(address, ASK)

    play(scene)


def test_a_frame_that_is_too_long_to_read_is_not_sent() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        with pytest.raises(SendError, match="bytes is more than any peer reads"):
            await client.invoke(A, Request(103, body=bytes(FRAME_MAX_LENGTH)))
        assert (await client.invoke(A, ASK)).code == 0
        assert (peer.connects, peer.codes) == (1, [105])

    play(scene)


def test_a_peer_that_takes_nothing_is_a_send_error_for_the_next_call() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.reads = False
        first = client.invoke_async(A, BIG, timeout_s=60)
        await asyncio.sleep(1)
        with pytest.raises(SendError, match="did not take what was written before"):
            await client.invoke(A, ASK, timeout_s=2)
        assert now() == 3
        with pytest.raises(ConnectionClosed):
            await first
        peer.reads = True
        assert (await client.invoke(A, ASK)).code == 0

    play(scene)


def test_a_call_that_waits_for_room_goes_on_when_there_is_some() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.reads = False
        calls = [asyncio.create_task(client.invoke(A, request)) for request in (BIG, ASK, ASK)]
        await asyncio.sleep(1)
        peer.take()
        assert [(await call).code for call in calls] == [0, 0, 0]
        assert (peer.codes, now()) == ([103, 105, 105], 1)

    play(scene)


def test_a_call_that_waits_for_room_fails_at_once_when_there_will_be_none() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.reads = False
        await client.invoke_oneway(A, BIG)
        call = asyncio.create_task(client.invoke(A, ASK, timeout_s=60))
        await asyncio.sleep(1)
        peer.cut()
        with pytest.raises(SendError, match="closed by the peer"):
            await call
        assert now() == 1

    play(scene)


def test_an_async_call_is_answered_or_fails_once() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        assert (await client.invoke_async(A, ASK)).code == 0
        peer.answer = silent
        reported: list[BaseException | None] = []
        call = client.invoke_async(A, ASK, timeout_s=5)
        call.add_done_callback(lambda done: reported.append(done.exception()))
        with pytest.raises(CallTimeout, match="no answer within the time"):
            await call
        assert 5 <= now() <= 7
        peer.answer = after(0)
        await client.invoke(A, ASK)
        assert len(reported) == 1

    play(scene)


def test_async_calls_are_ended_by_a_scan_each_second() -> None:
    async def ended(client: AsyncRemotingClient, timeout_s: float) -> float:
        with pytest.raises(CallTimeout):
            await client.invoke_async(A, ASK, timeout_s=timeout_s)
        return now()

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, silent)
        assert await ended(client, 0.5) == 2
        assert await ended(client, 1) == 4
        first = asyncio.create_task(ended(client, 2))
        await asyncio.sleep(0.5)
        assert await ended(client, 2) == 8, "due at 7.5, and looked for at 5, 6, 7, 8"
        assert await first == 7

    play(scene)


def test_no_timer_runs_while_nothing_waits() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A)
        await client.invoke_async(A, ASK)
        await asyncio.sleep(200)  # the connection is idle for long, and gone
        loop = asyncio.get_running_loop()
        assert [timer for timer in loop._scheduled if not timer.cancelled()] == []  # type: ignore[attr-defined]

    play(scene)


def test_permits_bound_what_is_under_way() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, after(2))
        first, second, third = (client.invoke_async(A, ASK, timeout_s=t) for t in (3, 5, 1))
        with pytest.raises(TooBusy):
            await third
        assert now() == 1
        assert ((await first).code, now()) == (0, 2)
        assert ((await second).code, now()) == (0, 4)
        assert len(peer.frames) == 2

    play(scene, RemotingOptions(async_permits=1))


def test_a_permit_for_oneway_requests_is_held_until_they_are_written() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.reads = False
        await client.invoke_oneway(A, BIG)
        waits_for_room = asyncio.create_task(client.invoke_oneway(A, ASK, timeout_s=3))
        await asyncio.sleep(1)
        with pytest.raises(TooBusy):
            await client.invoke_oneway(A, ASK, timeout_s=1)
        peer.take()
        await waits_for_room
        await client.invoke_oneway(A, ASK)
        await asyncio.sleep(0)
        assert peer.codes == [103, 105, 105]

    play(scene, RemotingOptions(oneway_permits=1))


def test_oneway_requests_are_written_even_when_the_client_closes_at_once() -> None:
    networks = []

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        networks.append(network)
        network.serve(A)
        await client.invoke_oneway(A, Request(904))

    play(scene)
    assert networks[0].peers[A].codes == [904]


def test_an_idle_connection_is_closed_and_opened_again() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        for _ in range(3):
            await client.invoke(A, ASK)
            await asyncio.sleep(119)
        assert peer.connects == 1
        await asyncio.sleep(2)
        assert peer.connections == []
        await client.invoke(A, ASK)
        assert peer.connects == 2

    play(scene)


def test_a_connection_over_which_is_only_written_is_not_idle() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        for _ in range(4):
            await client.invoke_oneway(A, ASK)
            await asyncio.sleep(100)
        assert (peer.connects, len(peer.connections)) == (1, 1)

    play(scene)


def test_waiting_for_a_permit_is_part_of_the_time() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, after(2))
        first, second = client.invoke_async(A, ASK), client.invoke_async(A, ASK, timeout_s=3)
        await first
        with pytest.raises(CallTimeout):
            await second
        assert 3 <= now() <= 5

    play(scene, RemotingOptions(async_permits=1))


def test_closing_waits_until_the_last_of_many_calls_has_failed() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, silent)
        calls = [client.invoke_async(A, ASK) for _ in range(100)]
        await asyncio.sleep(1)
        await client.close()
        assert {type(call.exception()) for call in calls} == {ConnectionClosed}

    play(scene, RemotingOptions(async_permits=1))


def test_closing_ends_the_calls_at_once_and_allows_no_others() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, silent)
        network.serve("127.0.0.9:1").connect_s = None
        calls = [client.invoke_async(A, ASK), client.invoke_async("127.0.0.9:1", ASK)]
        calls.append(asyncio.create_task(client.invoke(A, ASK)))
        await asyncio.sleep(1)
        await client.close()
        for call in calls:
            assert call.done()
            with pytest.raises(ConnectionClosed, match="this client is closed"):
                await call
        assert now() == 1
        for again in (client.invoke(A, ASK), client.invoke_oneway(A, ASK), client.invoke_async(A, ASK)):
            with pytest.raises(ConnectionClosed, match="this client is closed"):
                await again

    play(scene)


def test_closing_does_not_wait_for_a_peer_that_takes_nothing() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A).reads = False
        await client.invoke_oneway(A, BIG)
        await client.close()
        assert now() == 1

    play(scene)
