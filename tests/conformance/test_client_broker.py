"""Group CL, how brokers register. On a virtual clock and a network in memory."""

import asyncio

import pytest

from mqns.broker.events import Failed, Registered, Unregistered
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import decode_data_version
from rocketmq_remoting.registration import body_crc32
from testbed.network import Network
from testbed.virtual_time import START_S, now, run
from tests.mqns.broker.scene import AS_4X, QUIET, A, B, RecordingListener, agent, broker, silent

REGISTER, UNREGISTER = RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER
QUERY = RequestCode.QUERY_DATA_VERSION
BOTH = f"{A};{B}"


@pytest.mark.conformance("CL-01")
@pytest.mark.parametrize("how", ["refuses", "never connects", "never answers"])
def test_one_of_two_name_servers_is_unreachable(how: str) -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        lost, reached = network.serve(A, silent), network.serve(B)
        lost.refuses = how == "refuses"
        lost.connect_s = None if how == "never connects" else 0
        announced = agent(network, broker(namesrv_addr=BOTH, **AS_4X), listener)
        entering = asyncio.create_task(announced.__aenter__())
        await asyncio.sleep(0.001)
        assert listener.of(Registered) == [Registered(B)]
        await entering
        assert now() <= 6
        assert [(frame.at - START_S, frame.command.code) for frame in reached.frames] == [(0, REGISTER)]
        assert [event.address for event in listener.of(Failed)] == [A]
        await announced.close()

    run(play())


@pytest.mark.conformance("CL-02")
def test_all_name_servers_get_the_same_at_the_same_time() -> None:
    async def slow(request: Command) -> Command:
        await asyncio.sleep(1)
        return request.reply(0)

    async def play() -> None:
        network = Network()
        peers = [network.serve(address, slow) for address in (A, B)]
        async with agent(network, broker(namesrv_addr=BOTH, **QUIET)):
            assert now() == 1
            first, second = (peer.frames[0] for peer in peers)
            assert first.at == second.at == START_S
            assert first.command.body == second.command.body
            assert first.command.ext == second.command.ext
            assert first.command.get("bodyCrc32") == str(body_crc32(first.command.body))
            assert first.command.opaque != second.command.opaque

    run(play())


@pytest.mark.conformance("CL-03")
@pytest.mark.parametrize(("period_ms", "held_s"), [(1_000, 10), (30_000, 30), (90_000, 60)])
def test_the_period_is_kept_between_10_s_and_60_s(period_ms: int, held_s: int) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(register_name_server_period=period_ms, **QUIET)):
            await asyncio.sleep(10 + 3 * held_s + 1)
        rounds = [frame.at - START_S for frame in peer.frames if frame.command.code == REGISTER]
        assert rounds == [0, 10, 10 + held_s, 10 + 2 * held_s, 10 + 3 * held_s]

    run(play())


@pytest.mark.conformance("CL-04")
def test_a_broker_whose_version_is_known_does_not_register() -> None:
    def same(request: Command) -> Command:
        if request.code != QUERY:
            return request.reply(0)
        return request.reply(0, ext={"changed": "false"}, body=decode_data_version(request.body).encode())

    async def play() -> None:
        network = Network()
        peer = network.serve(A, same)
        async with agent(network, broker(force_register=False, **QUIET)):
            await asyncio.sleep(41)
            assert peer.codes == [REGISTER, QUERY, QUERY]

    run(play())


@pytest.mark.conformance("CL-05")
def test_a_broker_registers_when_it_cannot_learn_whether_it_has_to() -> None:
    def mute(request: Command) -> Command | None:
        return None if request.code == QUERY else request.reply(0)

    async def play() -> None:
        network = Network()
        peer = network.serve(A, mute)
        async with agent(network, broker(force_register=False, **AS_4X)):
            await asyncio.sleep(17)
            assert [(frame.command.code, frame.at - START_S) for frame in peer.frames] == [
                (REGISTER, 0),
                (QUERY, 10),
                (REGISTER, 16),
            ]

    run(play())


@pytest.mark.conformance("CL-06")
def test_a_broker_that_ends_unregisters_everywhere() -> None:
    def refuses(request: Command) -> Command | None:
        return None if request.code == UNREGISTER else request.reply(0)

    async def play() -> None:
        network, listener = Network(), RecordingListener()
        refusing, answers = network.serve(A, refuses), network.serve(B)
        async with agent(network, broker(namesrv_addr=BOTH), listener):
            await asyncio.sleep(5)
        assert (refusing.codes[-1], answers.codes[-1]) == (UNREGISTER, UNREGISTER)
        assert answers.frames[-1].at - refusing.frames[-1].at == 3
        assert answers.frames[-1].command.ext == {
            "brokerId": "0",
            "clusterName": "DefaultCluster",
            "brokerAddr": "127.0.0.1:10911",
            "brokerName": "broker-a",
        }
        assert listener.of(Unregistered) == [Unregistered(B)]
        assert network.open_connections == 0

    run(play())
