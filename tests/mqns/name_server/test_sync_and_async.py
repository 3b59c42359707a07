"""What a name server object adds to its calls: whom they go to, how long they may take, and all in turn."""

import asyncio

import pytest

from mqns.errors import CallTimeout, ConnectError, ResponseError
from mqns.name_server import calls
from mqns.name_server.client import AsyncNameServerClient
from rocketmq_remoting.command import Command
from testbed.network import Network
from testbed.virtual_time import now, run
from tests.mqns.remoting.scene import A, B, C, silent

PUT = calls.put_kv_config("ns", "k", "v")


def refusing(request: Command) -> Command:
    return request.reply(1, remark=f"no, says {request.code}")


async def opened(network: Network, *addresses: str) -> AsyncNameServerClient:
    return AsyncNameServerClient(addresses, connect=network.connect)


def asked(network: Network) -> list[str]:
    return [frame.address for frame in network.frames]


def test_all_are_asked_one_after_the_other_in_the_order_of_the_list() -> None:
    async def play() -> None:
        network = Network()
        under_way = 0

        async def answer(request: Command) -> Command:
            nonlocal under_way
            under_way += 1
            assert under_way == 1
            await asyncio.sleep(1)
            under_way -= 1
            return request.reply(0)

        for address in (A, B, C):
            network.serve(address, answer)
        async with await opened(network, A, B, C) as ns:
            assert await ns.call_all(PUT) == dict.fromkeys(ns.addresses)
            assert asked(network) == list(ns.addresses)
            assert now() == 3

    run(play())


def test_a_refusal_is_raised_after_the_last_was_asked() -> None:
    async def play() -> None:
        network = Network()
        for address in (A, B, C):
            network.serve(address)
        async with await opened(network, A, B, C) as ns:
            first, second, third = ns.addresses
            network.peers[first].answer = network.peers[second].answer = refusing
            with pytest.raises(ResponseError, match="no, says 100") as error:
                await ns.call_all(PUT)
            assert error.value.address == second, "the last refusal"
            assert asked(network) == [first, second, third]

    run(play())


def test_one_that_cannot_be_reached_ends_it_at_once() -> None:
    async def play() -> None:
        network = Network()
        for address in (A, B, C):
            network.serve(address)
        async with await opened(network, A, B, C) as ns:
            first, second, _ = ns.addresses
            network.peers[first].answer = refusing
            network.peers[second].refuses = True
            with pytest.raises(ConnectError) as error:
                await ns.call_all(PUT)
            assert error.value.address == second
            assert asked(network) == [first]

    run(play())


def test_one_may_be_asked_and_the_time_be_another() -> None:
    async def play() -> None:
        network = Network()
        network.serve(A)
        network.serve(C, silent)
        async with await opened(network, A) as ns:
            for patient in (ns.at(C).within(7), ns.within(7).at(C)):
                began = now()
                with pytest.raises(CallTimeout):
                    await patient.call(PUT)
                assert now() - began == 7
            began = now()
            with pytest.raises(CallTimeout):
                await ns.at(C).put_kv_config("ns", "k", "v")
            assert now() - began == 5, "if nothing is said"
            await ns.at(C).at(None).call(PUT)
            assert asked(network) == [C, C, C, A]

    run(play())


def test_a_change_of_the_list_is_for_all_that_share_it() -> None:
    async def play() -> None:
        network = Network()
        network.serve(B)
        async with await opened(network, A) as ns:
            patient = ns.within(9)
            patient.set_addresses(f"{B};{B}")
            assert ns.addresses == (B,)
            await ns.call(PUT)

    run(play())
