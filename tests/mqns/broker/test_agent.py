"""What an agent does, when, and what it tells. On a virtual clock and a network in memory."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from mqns.broker.agent import AsyncBrokerAgent, options_for
from mqns.broker.config import BrokerConfig, StaticTopicSettings
from mqns.broker.events import (
    Failed,
    MasterChanged,
    MinBrokerIdChanged,
    OrderTopicsChanged,
    Registered,
)
from mqns.errors import ConfigError, ConnectError, ConnectionClosed, ResponseError
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.cluster import BrokerMemberGroup, encode_broker_member_group
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.language import LanguageCode
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, SerializeType
from rocketmq_remoting.route import BrokerData, TopicRouteData, decode_route, encode_route
from rocketmq_remoting.topic_config import TopicConfig
from testbed.network import Frame, Network, Peer
from testbed.virtual_time import START_S, now, run
from tests.mqns.broker.scene import (
    AS_4X,
    QUIET,
    START_MS,
    TA,
    A,
    B,
    RecordingListener,
    agent,
    body,
    broker,
    silent,
)

REGISTER, UNREGISTER = RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER
QUERY, HEARTBEAT = RequestCode.QUERY_DATA_VERSION, RequestCode.BROKER_HEARTBEAT
ROUTE, CLUSTER, MEMBERS = (
    RequestCode.GET_ROUTEINFO_BY_TOPIC,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.GET_BROKER_MEMBER_GROUP,
)
ACTING = {"enable_slave_acting_master": True, "refresh_cluster_info": False}
BOTH = f"{A};{B}"


def with_code(peer: Peer, code: RequestCode) -> list[Frame]:
    return [frame for frame in peer.frames if frame.command.code == code]


def times(peer: Peer, code: RequestCode) -> list[float]:
    return [frame.at - START_S for frame in with_code(peer, code)]


def registrations(peer: Peer) -> list[Frame]:
    return with_code(peer, REGISTER)


# rounds


def test_the_first_round_is_over_when_the_block_begins() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET), listener) as announced:
            (frame,) = peer.frames
            assert listener.events == [Registered(A)]
            sent = body(frame)
            assert sent.topics.keys() == announced.topics.keys()
            assert {"TA", "TB", "SELF_TEST_TOPIC", "broker-a"} < sent.topics.keys()
            assert sent.data_version == announced.data_version == DataVersion(0, START_MS + 1_000_000, 0)

    run(play())


@pytest.mark.parametrize(
    ("version", "encoding"), [("4.8.0", "JSON"), ("5.5.0", "JSON"), ("5.5.0", "ROCKETMQ")]
)
def test_requests_look_like_those_of_the_release_that_is_played(version: str, encoding: str) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        config = broker(version=version, serialize_type=encoding)
        async with agent(network, config):
            command = peer.frames[0].command
            assert (command.version, command.language) == (config.ordinal, LanguageCode.JAVA)
            assert command.serialize_type is SerializeType[encoding]
            assert (command.get("enableActingMaster") == "false") is config.is_5x
        options = options_for(config)
        assert options.close_on_timeout is options_for(replace(config, version="4.9.1")).close_on_timeout or (
            version == "4.8.0"
        )

    run(play())


def test_no_name_server_at_all() -> None:
    async def play() -> None:
        listener = RecordingListener()
        async with agent(Network(), broker(namesrv_addr="", **AS_4X), listener) as announced:
            await asyncio.sleep(100)
            assert await announced.register() == []
        assert listener.events == []

    run(play())


def test_a_round_that_takes_longer_than_the_period_is_followed_by_one_other() -> None:
    async def slow(request: Command) -> Command:
        await asyncio.sleep(23 if now() == 10 else 0)
        return request.reply(0)

    async def play() -> None:
        network = Network()
        peer = network.serve(A, slow)
        async with agent(network, broker(register_name_server_period=10_000, **QUIET)):
            await asyncio.sleep(54)
            assert times(peer, REGISTER) == [0, 10, 33, 43, 53]

    run(play())


def test_every_failure_is_reported_with_its_error() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        network.serve(A, lambda request: request.reply(1, remark="register broker failed"))
        async with agent(network, broker(namesrv_addr=BOTH, **QUIET), listener):
            refused, unreached = sorted(listener.of(Failed), key=lambda event: event.address)
            assert (refused.address, refused.code, unreached.address) == (A, REGISTER, B)
            assert isinstance(refused.error, ResponseError)
            assert (refused.error.code, refused.error.remark) == (1, "register broker failed")
            assert isinstance(unreached.error, ConnectError)
        assert [event.code for event in listener.of(Failed)[-2:]] == [UNREGISTER, UNREGISTER]

    run(play())


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x00", b"\xff" * 100])
def test_garbage_for_an_answer_is_a_failure_and_the_next_round_succeeds(garbage: bytes) -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(A, lambda _: garbage)
        async with agent(network, broker(**QUIET), listener):
            (failure,) = listener.of(Failed)
            assert isinstance(failure.error, ConnectionClosed)
            peer.answer = lambda request: request.reply(0)
            await asyncio.sleep(11)
            assert listener.events[1:] == [Registered(A)]

    run(play())


def test_an_order_table_that_cannot_be_read_is_a_failure() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        network.serve(A, lambda request: request.reply(0, body=b"[" * 100_000))
        async with agent(network, broker(**QUIET), listener):
            assert [type(event) for event in listener.events] == [Failed]

    run(play())


def test_a_name_server_that_comes_back_is_registered_with_by_the_next_round() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET), listener):
            peer.vanish()
            await asyncio.sleep(11)
            peer.refuses = False
            await asyncio.sleep(30)
            assert [type(event) for event in listener.events] == [Registered, Failed, Registered]
            assert network.open_connections == 1

    run(play())


def test_other_name_servers_are_registered_with_from_the_next_round_on() -> None:
    async def play() -> None:
        network = Network()
        old, new = network.serve(A), network.serve(B)
        async with agent(network, broker(**QUIET)) as announced:
            announced.set_name_servers([B, B])
            await asyncio.sleep(11)
            assert (old.codes, new.codes) == ([REGISTER], [REGISTER])
        assert (old.codes, new.codes) == ([REGISTER], [REGISTER, UNREGISTER])

    run(play())


# what name servers answer


def test_the_first_answer_of_a_round_counts() -> None:
    def answering(delay_s: float, master: str) -> object:
        async def answer(request: Command) -> Command:
            await asyncio.sleep(delay_s)
            return request.reply(0, ext={"masterAddr": master, "haServerAddr": f"ha-{master}"})

        return answer

    async def play() -> None:
        network, listener = Network(), RecordingListener()
        network.serve(A, answering(2, "slow:1"))  # type: ignore[arg-type]
        network.serve(B, answering(1, "fast:1"))  # type: ignore[arg-type]
        async with agent(network, broker(namesrv_addr=BOTH, broker_id=1, **QUIET), listener) as announced:
            assert listener.events == [
                Registered(B, "fast:1", "ha-fast:1"),
                Registered(A, "slow:1", "ha-slow:1"),
                MasterChanged("fast:1", "ha-fast:1"),
            ]
            await announced.register()
            assert listener.of(MasterChanged) == [announced.master]

    run(play())


def test_a_slave_without_a_master_keeps_the_replication_address() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(
            A, lambda request: request.reply(0, ext={"masterAddr": "m:1", "haServerAddr": "h:1"})
        )
        async with agent(network, broker(broker_id=1, **QUIET), listener) as announced:
            peer.answer = lambda request: request.reply(0, ext={})
            await announced.register()
            assert listener.of(MasterChanged) == [MasterChanged("m:1", "h:1"), MasterChanged(None, "h:1")]

    run(play())


def test_order_topics_change_the_version_and_are_sent_with_the_next_round() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(
            A, lambda request: request.reply(0, body=b'{"table":{"TA":"broker-a:8","TX":"b:1"}}')
        )
        async with agent(network, broker(**QUIET), listener) as announced:
            assert listener.of(OrderTopicsChanged) == [OrderTopicsChanged(frozenset({"TA"}))]
            assert announced.data_version.counter == 1
            await asyncio.sleep(11)
            first, second = map(body, registrations(peer))
            assert (first.topics["TA"].order, second.topics["TA"].order) == (False, True)
            assert second.data_version.counter == announced.data_version.counter == 1
            await announced.register(check_order=False)
            peer.answer = lambda request: request.reply(0)
            await announced.register()
            assert announced.topics["TA"].order
            peer.answer = lambda request: request.reply(0, body=b'{"table":{}}')
            await announced.register(check_order=False)
            assert announced.topics["TA"].order
            await announced.register()
            assert not announced.topics["TA"].order

    run(play())


@pytest.mark.parametrize(
    ("answer", "registers"),
    [
        ({"changed": "false"}, False),
        ({"changed": "FALSE"}, False),
        ({"changed": "true"}, True),
        ({}, True),
        (None, True),
        ("other version", True),
        ("refusal", False),
        ("no version", True),
    ],
)
def test_whether_a_round_is_needed(answer: dict[str, str] | str | None, registers: bool) -> None:
    def reply(request: Command) -> Command:
        if request.code != QUERY:
            return request.reply(0)
        match answer:
            case "other version":
                return request.reply(0, ext={"changed": "false"}, body=DataVersion(0, 1, 1).encode())
            case "refusal":
                return request.reply(1, remark="no")
            case "no version":
                return request.reply(0, ext={"changed": "false"}, body=b"nonsense")
            case str():
                raise AssertionError
            case _:
                return request.reply(0, ext=answer)

    async def play() -> None:
        network = Network()
        quiet, peer = network.serve(A), network.serve(B, reply)
        quiet.answer = lambda request: request.reply(0, ext={"changed": "false"})
        async with agent(network, broker(namesrv_addr=BOTH, force_register=False, **QUIET)):
            await asyncio.sleep(11)
            assert (len(registrations(quiet)), len(registrations(peer))) == ((2, 2) if registers else (1, 1))

    run(play())


# topics


@pytest.mark.parametrize(("version", "carried"), [("5.5.0", [["TC", "TD"]]), ("4.9.7", [["TC"], ["TD"]])])
def test_changed_topics_are_registered_at_once_and_alone(version: str, carried: list[list[str]]) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        config = broker(version=version)
        async with agent(network, config) as announced:
            assert len(await announced.put_topics(TopicConfig("TC"), TopicConfig("TD"))) == len(carried)
            increments = registrations(peer)[1:]
            assert [sorted(body(frame, config.ordinal).topics) for frame in increments] == carried
            assert not any(frame.command.is_oneway for frame in increments)
            counters = [body(frame, config.ordinal).data_version.counter for frame in increments]
            assert counters == list(range(1, len(carried) + 1))
            await announced.register()
            assert {"TC", "TD", "TA"} < body(registrations(peer)[-1], config.ordinal).topics.keys()

    run(play())


@pytest.mark.parametrize(("version", "oneway"), [("4.9.7", True), ("5.1.3", True), ("5.1.4", False)])
def test_topics_that_came_about_by_themselves(version: str, oneway: bool) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        config = broker(version=version, **QUIET)
        async with agent(network, config) as announced:
            await announced.put_topics(TopicConfig("%RETRY%group", 1, 1), auto_created=True)
            await asyncio.sleep(1)
            reported = registrations(peer)[1]
            assert (reported.command.flag == ONEWAY_FLAG) is oneway
            assert ("TA" in body(reported, config.ordinal).topics) is oneway
            assert "%RETRY%group" in body(reported, config.ordinal).topics

    run(play())


def test_a_deleted_topic_is_missing_from_the_next_round() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET)) as announced:
            assert await announced.delete_topic("TA")
            assert not await announced.delete_topic("TA")
            assert len(registrations(peer)) == 1
            await asyncio.sleep(11)
            later = body(registrations(peer)[1])
            assert "TA" not in later.topics
            assert later.data_version.counter == 1

    run(play())


@pytest.mark.parametrize(
    ("topic", "reported"),
    [
        (TopicConfig("a b"), "topic 'a b': topicName: expected str without blanks, not empty"),
        (TopicConfig("a", -1), "topic 'a': readQueueNums: expected int >= 0"),
        (TopicConfig("a", perm=99), "topic 'a': perm: expected int <= 15"),
    ],
)
def test_a_topic_that_no_broker_can_have_changes_nothing(topic: TopicConfig, reported: str) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET)) as announced:
            before = announced.data_version
            with pytest.raises(ConfigError) as error:
                await announced.put_topics(TopicConfig("good"), topic)
            assert str(error.value) == reported
            assert await announced.put_topics() == []
            assert (announced.data_version, peer.codes) == (before, [REGISTER])

    run(play())


def test_a_single_topic_may_be_registered_by_217() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(A)
        config = broker(enable_single_topic_register=True, broker_permission=4, **QUIET)
        async with agent(network, config, listener) as announced:
            assert await announced.put_topics(TopicConfig("TC", 4, 2)) == [Registered(A)]
            reported = peer.frames[-1].command
            (queues,) = decode_route(reported.body).queue_datas
            assert (reported.code, reported.get("topic")) == (RequestCode.REGISTER_TOPIC_IN_NAMESRV, "TC")
            assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (4, 2, 4)

    run(play())


def test_static_topics_carry_their_mapping() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        settings = StaticTopicSettings(topic="TS", total_queues=4, curr_id_map={1: 0}, epoch=5)
        async with agent(network, broker(**QUIET)) as announced:
            await announced.put_topics(TopicConfig("TS"), mappings=[settings.mapping("broker-a")])
            await announced.register()
            for frame in registrations(peer)[1:]:
                assert body(frame).mapping_infos == {"TS": settings.mapping("broker-a")}

    run(play())


def test_split_registrations_go_one_after_the_other_each_with_a_newer_version() -> None:
    async def slow(request: Command) -> Command:
        await asyncio.sleep(1)
        return request.reply(0)

    async def play() -> None:
        network = Network()
        peer = network.serve(A, slow)
        config = broker(
            enable_split_registration=True, split_registration_size=7, force_register=False, **QUIET
        )
        async with agent(network, config):
            assert times(peer, REGISTER) == [0, 1, 2]
            pieces = [body(frame) for frame in registrations(peer)]
            assert [len(piece.topics) for piece in pieces] == [7, 7, 3]
            assert [piece.data_version.counter for piece in pieces] == [1, 2, 3]
            await asyncio.sleep(14)
            assert with_code(peer, QUERY) == []
            assert len(registrations(peer)) == 6

    run(play())


@pytest.mark.parametrize(
    ("version", "keep_bug", "said"),
    [("4.9.7", True, "true"), ("5.5.0", True, "false"), ("5.5.0", False, "true")],
)
def test_what_is_said_of_a_compressed_body(version: str, keep_bug: bool, said: str) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        config = broker(compressed_register=True, keep_compressed_bug=keep_bug, version=version)
        async with agent(network, config) as announced:
            frame = peer.frames[0]
            assert (frame.command.get("compressed"), frame.command.body[:1]) == (said, b"x")
            assert body(frame, config.ordinal).topics.keys() == announced.topics.keys()

    run(play())


# heartbeats and questions


@pytest.mark.parametrize(
    ("compatible", "heartbeat", "question"), [(True, QUERY, ROUTE), (False, HEARTBEAT, MEMBERS)]
)
def test_a_broker_that_may_act_as_master_sends_a_heartbeat_each_second(
    compatible: bool, heartbeat: RequestCode, question: RequestCode
) -> None:
    async def play() -> None:
        network = Network()
        peers = [network.serve(address) for address in (A, B)]
        config = broker(namesrv_addr=BOTH, compatible_with_old_name_srv=compatible, **ACTING)
        async with agent(network, config) as announced:
            await asyncio.sleep(3.5)
            for peer in peers:
                heartbeats_of = with_code(peer, heartbeat)
                assert times(peer, heartbeat) == [1, 2, 3]
                assert all(frame.command.flag == ONEWAY_FLAG for frame in heartbeats_of)
                if compatible:
                    assert decode_data_version(heartbeats_of[0].command.body) == announced.data_version
            asked = [frame.at - START_S for frame in network.frames if frame.command.code == question]
            assert asked == [1, 2, 3]
            assert peers[0].frames[0].command.get("heartbeatTimeoutMillis") == "10000"

    run(play())


def test_a_name_server_that_cannot_be_reached_does_not_delay_heartbeats_to_others() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        dead, peer = network.serve(A), network.serve(B)
        config = broker(namesrv_addr=BOTH, compatible_with_old_name_srv=False, **ACTING)
        async with agent(network, config, listener):
            dead.connect_s = None
            dead.cut()
            await asyncio.sleep(5.5)
            assert times(peer, HEARTBEAT) == [1, 2, 3, 4, 5]
            assert {event.address for event in listener.of(Failed) if event.code == HEARTBEAT} == {A}
            dead.refuses, dead.connect_s = True, 0

    run(play())


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_only_brokers_of_5_x_ask_for_the_cluster_every_5_s(version: str) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(version=version)):
            await asyncio.sleep(26)
            assert times(peer, CLUSTER) == ([10, 15, 20, 25] if version == "5.5.0" else [])

    run(play())


@pytest.mark.parametrize("compatible", [True, False])
def test_the_smallest_id_is_read_from_the_members(compatible: bool) -> None:
    addresses = {0: "a:1", 1: "b:1"}

    def answer(request: Command) -> Command:
        data = BrokerData("c", "broker-a", addresses)
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                assert request.get("topic") == "rmq_sys_SYNC_BROKER_MEMBER_broker-a"
                other = replace(data, broker_name="other", broker_addrs={9: "x:1"})
                return request.reply(0, body=encode_route(TopicRouteData((other, data), ()), Dialect.LEGACY))
            case RequestCode.GET_BROKER_MEMBER_GROUP:
                group = BrokerMemberGroup("c", "broker-a", addresses)
                return request.reply(0, body=encode_broker_member_group(group))
            case _:
                return request.reply(0)

    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(A, answer)
        config = broker(broker_id=1, compatible_with_old_name_srv=compatible, **ACTING)
        async with agent(network, config, listener) as announced:
            await asyncio.sleep(3.5)
            assert listener.of(MinBrokerIdChanged) == [MinBrokerIdChanged(0, "a:1")]
            del addresses[0]
            await asyncio.sleep(1)
            assert announced.min_broker_id == 1
            peer.answer = lambda request: request.reply(17 if compatible else 1, remark="gone")
            await asyncio.sleep(1)
            assert announced.min_broker_id == 1

    run(play())


def test_a_push_names_the_smallest_id() -> None:
    def push(smallest: str) -> Command:
        ext = {"minBrokerId": smallest, "minBrokerAddr": "b:1", "offlineBrokerAddr": "a:1"}
        return Command(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, 7, ext=ext)

    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET), listener):
            for smallest in ("1", "1", "none", "", "9" * 5000):
                peer.push(push(smallest))
                await asyncio.sleep(0)
            await asyncio.sleep(1)
            assert listener.of(MinBrokerIdChanged) == [MinBrokerIdChanged(1, "b:1", "a:1")]
            answers = [frame.command.code for frame in peer.frames if frame.command.is_response]
            assert answers == [0, 0, 1, 1, 1]

    run(play())


# roles, ends and beginnings


@pytest.mark.parametrize(("version", "flag"), [("4.9.7", ONEWAY_FLAG), ("5.5.0", 0)])
def test_a_slave_that_becomes_master_says_so_at_once(version: str, flag: int) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(broker_id=1, version=version)) as announced:
            await announced.change_broker_id(0)
            await asyncio.sleep(1)
            command = registrations(peer)[1].command
            assert (command.get("brokerId"), command.flag, announced.config.broker_id) == ("0", flag, 0)
            with pytest.raises(ConfigError, match="brokerId"):
                await announced.change_broker_id(-1)
        assert peer.frames[-1].command.get("brokerId") == "0"

    run(play())


def test_a_round_that_is_under_way_ends_before_it_unregisters() -> None:
    async def slow(request: Command) -> Command:
        await asyncio.sleep(2 if request.code == REGISTER else 0)
        return request.reply(0)

    async def play() -> None:
        network = Network()
        peer = network.serve(A, slow)
        announced = agent(network, broker(**QUIET))
        async with announced:
            await asyncio.sleep(11)
        assert [(frame.command.code, frame.at - START_S) for frame in peer.frames] == [
            (REGISTER, 0),
            (REGISTER, 12),
            (UNREGISTER, 14),
        ]
        await announced.close()
        with pytest.raises(ConnectionClosed, match="the agent is closed"):
            await announced.register()

    run(play())


def test_a_round_that_does_not_end_is_not_waited_for() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET)):
            peer.answer = silent
            await asyncio.sleep(11)
        assert now() == 11 + 3 + 3  # for the round, and for the answer to 104
        assert network.open_connections == 0

    run(play())


def test_an_agent_that_is_cancelled_as_it_starts_unregisters() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A, silent)
        entering = asyncio.create_task(agent(network, broker()).__aenter__())
        await asyncio.sleep(1)
        entering.cancel()
        await asyncio.wait({entering})
        assert entering.cancelled()
        assert peer.codes == [REGISTER, UNREGISTER]
        assert network.open_connections == 0

    run(play())


def test_an_agent_waits_until_it_is_closed() -> None:
    async def play() -> None:
        network = Network()
        network.serve(A)
        async with agent(network, broker()) as announced:
            waiting = asyncio.create_task(announced.wait())
            await asyncio.sleep(100)
            assert not waiting.done()
        await waiting

    run(play())


def test_a_listener_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Sour(RecordingListener):
        def __call__(self, event: object) -> None:
            raise RuntimeError("sour")

    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        async with agent(network, broker(**QUIET), Sour()):
            await asyncio.sleep(11)
        assert peer.codes == [REGISTER, REGISTER, UNREGISTER]

    run(play())
    assert caplog.text.count("RuntimeError: sour") == 3


def test_agents_may_share_connections() -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        first = broker(**QUIET)
        async with AsyncRemotingClient(options_for(first), connect=network.connect) as client:
            for number in range(3):
                config = replace(first, broker_name=f"broker-{number}", listen_port=10911 + number)
                shared = _shared(config, client)
                async with shared:
                    pass
            assert peer.connects == 1
            assert network.open_connections == 1

    run(play())


def _shared(config: BrokerConfig, client: AsyncRemotingClient) -> AsyncBrokerAgent:
    return AsyncBrokerAgent(config, client=client, listener=RecordingListener())


def test_the_version_goes_on_from_one_start_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "version.json"

    async def start(config: BrokerConfig, *more: str) -> DataVersion:
        network = Network()
        network.serve(A)
        async with agent(network, config) as announced:
            for name in more:
                await announced.put_topics(TopicConfig(name))
            await asyncio.sleep(1)
            return announced.data_version

    config = broker(data_version_file=str(path), **QUIET)
    first = run(start(config))
    assert run(start(config)) == first
    changed = run(start(config, "TC", "TD"))
    assert changed.counter == 2
    assert run(start(config)).counter == 3  # TC and TD are gone
    path.write_text("nonsense")
    assert run(start(config)).counter == 0


def test_a_version_that_cannot_be_kept_is_no_reason_to_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        network = Network()
        peer = network.serve(A)
        in_the_way = tmp_path / "file"
        in_the_way.write_text("")
        async with agent(network, broker(data_version_file=str(in_the_way / "version.json"))):
            assert peer.codes == [REGISTER]

    run(play())
    assert "the data version is not kept" in caplog.text


def test_a_clock_that_goes_back_still_gives_another_version() -> None:
    async def play() -> None:
        network = Network()
        network.serve(A)
        clock = iter(range(10_000_000, 0, -1000))
        async with agent(network, broker(**QUIET), now_ms=lambda: next(clock)) as announced:
            versions = [announced.data_version]
            for _ in range(3):
                await announced.put_topics(TA)
                versions.append(announced.data_version)
        assert [version.counter for version in versions] == [0, 1, 2, 3]

    run(play())


def test_a_half_open_name_server_is_a_failure_until_it_reads_again() -> None:
    async def play() -> None:
        network, listener = Network(), RecordingListener()
        peer, other = network.serve(A), network.serve(B)
        async with agent(network, broker(namesrv_addr=BOTH, **QUIET, **AS_4X), listener):
            peer.reads = False
            await asyncio.sleep(17)
            assert [event.address for event in listener.of(Failed)] == [A]
            assert times(other, REGISTER) == [0, 10]
            peer.reads = True
            await asyncio.sleep(30)
            assert len(listener.of(Failed)) == 1
            assert times(other, REGISTER) == [0, 10, 40]
            assert network.open_connections == 2

    run(play())
