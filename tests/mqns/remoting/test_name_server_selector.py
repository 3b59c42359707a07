"""Which name server calls without an address go to."""

import asyncio

import pytest

from mqns.errors import AddressError, CallTimeout, ConnectError, ConnectionClosed
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from testbed.network import Network
from testbed.virtual_time import now
from tests.mqns.remoting.scene import ASK, A, B, C, after, play, silent

ALL = (A, B, C)
ONE_AT_A_TIME = RemotingOptions(try_all_name_servers=False)


def asked(network: Network) -> list[str]:
    """Return the addresses that were asked, in order."""
    return [frame.address for frame in network.frames]


def chosen(client: AsyncRemotingClient) -> str:
    assert client.chosen_name_server is not None
    return client.chosen_name_server


def turned(client: AsyncRemotingClient) -> list[str]:
    """The list, from the chosen one on."""
    addresses = list(client.name_servers)
    at = addresses.index(chosen(client))
    return addresses[at:] + addresses[:at]


def test_the_chosen_one_is_kept_while_its_connection_lives() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in ALL:
            network.serve(address)
        await asyncio.gather(*(client.invoke(None, ASK) for _ in range(10)))
        await client.invoke_oneway(None, ASK)
        await client.invoke_async(None, ASK)
        assert set(asked(network)) == {client.chosen_name_server}
        assert network.open_connections == 1

    play(scene, name_servers=ALL)


def test_an_idle_end_is_followed_by_the_next_one() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in ALL:
            network.serve(address)
        await client.invoke(None, ASK)
        expected = [*turned(client), chosen(client)]
        for _ in range(3):
            await asyncio.sleep(121)
            await client.invoke(None, ASK)
        assert asked(network) == expected

    play(scene, name_servers=ALL)


def test_the_first_choice_is_anyones() -> None:
    firsts = set()

    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in ALL:
            network.serve(address)
        await client.invoke(None, ASK)
        firsts.add(chosen(client))

    for _ in range(200):
        play(scene, name_servers=ALL)
    assert firsts == set(ALL)


def test_a_call_goes_through_the_whole_list() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(B)
        await client.invoke(None, ASK)
        assert client.chosen_name_server == B
        network.peers[B].vanish()
        await asyncio.sleep(0)
        with pytest.raises(ConnectError) as error:
            await client.invoke(None, ASK)
        assert error.value.address == ";".join(client.name_servers)
        assert all(address in error.value.reason for address in ALL)
        network.serve(C)
        await client.invoke(None, ASK)
        assert client.chosen_name_server == C

    play(scene, name_servers=ALL)


def test_as_in_5x_a_call_tries_one_and_the_next_call_the_next() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        failed = set()
        for _ in ALL:
            with pytest.raises(ConnectError) as error:
                await client.invoke(None, ASK)
            failed.add(error.value.address)
        assert failed == set(ALL), "each in its turn"
        for address in ALL:
            network.serve(address)
        await client.invoke(None, ASK)

    play(scene, ONE_AT_A_TIME, name_servers=ALL)


def test_one_that_cannot_be_connected_to_in_time_is_skipped_by_the_next_call() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in ALL:
            network.serve(address).connect_s = None
        tried = []
        for _ in ALL:
            with pytest.raises(CallTimeout):
                await client.invoke(None, ASK, timeout_s=1)
            tried.append(chosen(client))
        assert sorted(tried) == sorted(ALL)

    play(scene, name_servers=ALL)


def test_others_wait_for_the_one_that_chooses_but_not_for_ever() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in ALL:
            network.serve(address).connect_s = None
        choosing = client.invoke_async(None, ASK, timeout_s=60)
        await asyncio.sleep(0)
        with pytest.raises(CallTimeout, match="another call is still looking"):
            await client.invoke(None, ASK, timeout_s=2)
        assert now() == 2
        with pytest.raises(ConnectError, match="another call is still looking"):
            await client.invoke(None, ASK, timeout_s=60)
        assert now() == 5
        with pytest.raises(ConnectError, match="not connected within 3 s"):
            await choosing
        assert now() == 9

    play(scene, name_servers=ALL)


def test_without_a_list_there_is_no_server_to_ask() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for _ in range(2):
            with pytest.raises(ConnectError, match="no name server is known"):
                await client.invoke(None, ASK)
        network.serve(A)
        client.set_name_servers([A])
        await client.invoke(None, ASK)

    for options in (None, ONE_AT_A_TIME):
        play(scene, options)


def test_a_list_with_the_same_members_changes_nothing() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        before = client.name_servers
        for _ in range(20):
            client.set_name_servers([C, B, A, A])
        assert client.name_servers == before

    play(scene, name_servers=ALL)


def test_a_new_list_is_shuffled() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        many = [f"127.0.0.1:{port}" for port in range(1, 100)]
        client.set_name_servers(many)
        assert sorted(client.name_servers) == sorted(many)
        assert list(client.name_servers) != many

    play(scene)


def test_a_choice_that_is_no_longer_in_the_list_is_dropped_when_its_answers_have_come() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        old, new = network.serve(A, after(2)), network.serve(B)
        under_way = [asyncio.create_task(client.invoke(None, ASK)), client.invoke_async(None, ASK)]
        await asyncio.sleep(1)
        client.set_name_servers([B])
        assert client.chosen_name_server is None
        await client.invoke(None, ASK)
        assert (asked(network)[-1], len(old.connections)) == (B, 1)
        assert [(await call).code for call in under_way] == [0, 0]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (old.connections, len(new.connections), now()) == ([], 1, 2)

    play(scene, name_servers=(A,))


def test_a_dropped_choice_that_never_answers_is_left_all_the_same() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        old = network.serve(A, silent)
        network.serve(B)
        call = client.invoke_async(None, ASK, timeout_s=2)
        await asyncio.sleep(1)
        client.set_name_servers([B])
        with pytest.raises(CallTimeout):
            await call
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert old.connections == []

    play(scene, name_servers=(A,))


def test_a_choice_that_is_still_in_the_list_is_kept() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        network.serve(A)
        await client.invoke(None, ASK)
        client.set_name_servers([B, A, C])
        await client.invoke(None, ASK)
        assert (client.chosen_name_server, network.peers[A].connects) == (A, 1)

    play(scene, name_servers=(A,))


def test_a_list_with_an_address_that_is_none_is_refused_as_a_whole() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        with pytest.raises(AddressError, match="'nonsense'"):
            client.set_name_servers([B, "nonsense"])
        assert client.name_servers == (A,)

    play(scene, name_servers=(A,))


def test_a_choice_that_dies_with_calls_under_way_fails_only_those() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        for address in ALL:
            network.serve(address, after(1))
        calls = [client.invoke_async(None, Request(105)) for _ in range(5)]
        await asyncio.sleep(0.5)
        network.peers[chosen(client)].vanish()
        for call in calls:
            with pytest.raises(ConnectionClosed):
                await call
        assert (await client.invoke(None, ASK)).code == 0

    play(scene, name_servers=ALL)
