"""The remoting client (docs/conformance.md, CL-07 to CL-12), on a virtual clock."""

import asyncio

import pytest

from mqns.errors import CallTimeout, ConnectionClosed
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from testbed.network import Network
from testbed.virtual_time import now
from tests.mqns.remoting.scene import ASK, A, B, C, after, play, silent


@pytest.mark.conformance("CL-07")
def test_connecting_is_part_of_the_budget() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, silent).connect_s = 1
        with pytest.raises(CallTimeout, match="no answer"):
            await client.invoke(A, ASK, timeout_s=3)
        assert now() == 3

    play(scene)


@pytest.mark.conformance("CL-08")
@pytest.mark.parametrize("connect_s", [2, 2.5, None])
def test_a_connect_that_takes_longer_than_the_budget(connect_s: float | None) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.connect_s = connect_s
        with pytest.raises(CallTimeout, match="nothing was sent"):
            await client.invoke(A, ASK, timeout_s=2)
        assert now() == 2
        await asyncio.sleep(10)
        assert peer.frames == []

    play(scene)


@pytest.mark.conformance("CL-09")
@pytest.mark.parametrize("connect_s", [0, 1])
def test_two_that_call_a_new_address_share_one_connection(connect_s: float) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        peer.connect_s = connect_s
        await asyncio.gather(client.invoke(A, ASK), client.invoke(A, ASK))
        await client.invoke(A, ASK)
        assert peer.connects == 1
        assert [frame.connection for frame in peer.frames] == [1, 1, 1]

    play(scene)


@pytest.mark.conformance("CL-10")
@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "Connection reset by peer")])
def test_a_connection_that_closes_fails_the_calls_that_wait_there_at_once(error: Exception | None) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A, silent)
        sync = asyncio.create_task(client.invoke(A, ASK, timeout_s=60))
        other = client.invoke_async(A, ASK, timeout_s=60)
        await asyncio.sleep(1)
        peer.cut(error)
        for call in (sync, other):
            with pytest.raises(ConnectionClosed):
                await call
        assert now() == 1

    play(scene)


@pytest.mark.conformance("CL-11")
@pytest.mark.parametrize("begin_s", [0, 0.25, 2, 7.5])
@pytest.mark.parametrize("timeout_s", [0.25, 1, 3, 10.5])
def test_an_async_call_without_answer_fails_up_to_two_seconds_late(begin_s: float, timeout_s: float) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A, silent)
        earlier = client.invoke_async(A, ASK, timeout_s=60)
        await asyncio.sleep(begin_s)
        began = now()
        with pytest.raises(CallTimeout):
            await client.invoke_async(A, ASK, timeout_s=timeout_s)
        assert timeout_s <= now() - began <= timeout_s + 2
        earlier.cancel()

    play(scene)


@pytest.mark.conformance("CL-12")
@pytest.mark.parametrize("whole_list", [True, False])
def test_when_the_chosen_name_server_dies_the_next_one_is_called(whole_list: bool) -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in (A, B, C):
            network.serve(address, after(0))
        await client.invoke(None, ASK)
        order = client.name_servers * 2
        at = order.index(client.chosen_name_server or "")
        for turn in range(3):
            await client.invoke(None, ASK)
            assert client.chosen_name_server == order[(at + turn) % 3]
            network.peers[order[(at + turn) % 3]].cut()
            await asyncio.sleep(1)
        asked = [frame.address for frame in network.frames]
        assert asked == [order[at]] + [order[(at + turn) % 3] for turn in range(3)]

    play(scene, RemotingOptions(try_all_name_servers=whole_list), name_servers=(A, B, C))
