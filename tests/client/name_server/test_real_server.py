"""Both faces against the real mqnamesrv, with every call."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from client.errors import AnswerError, CallTimeout, ConnectError, ConnectionClosed
from client.name_server import calls
from client.name_server.calls import BrokerIdentity, Registered, VersionAnswer
from client.name_server.client import AsyncNameServer, NameServer
from client.wire.options import RemotingOptions
from client.wire.tls import client_context
from remoting.cluster import BrokerMemberGroup, ClusterInfo
from remoting.command import SerializeType
from remoting.data_version import DataVersion
from remoting.kv_table import KVTable
from remoting.registration import RegisterBrokerBody, encode_register_broker_body
from remoting.route import BrokerData, QueueData, TopicRouteData
from remoting.topic_config import TopicConfig
from remoting.topic_list import TopicList
from remoting.version import CURRENT
from tests.harness.nameserver import NameServer as Server
from tests.harness.patience import eventually

MASTER = BrokerIdentity("c1", "broker-a", "127.10.0.1:10911", 0)
SLAVE = BrokerIdentity("c1", "broker-a", "127.10.0.2:10911", 1)
VERSION = DataVersion(0, 1000, 1)
TOPICS = {
    name: TopicConfig(name, 8, 8, 6, flag) for name, flag in {"TA": 0, "Unit": 1, "Sub": 2, "Both": 3}.items()
}
BODY = RegisterBrokerBody(VERSION, TOPICS, TOPICS.keys())
PLAIN = encode_register_broker_body(BODY, version=CURRENT, compressed=False)
COMPRESSED = encode_register_broker_body(BODY, version=CURRENT, compressed=True)
ORDER = "ORDER_TOPIC_CONFIG"

Play = Callable[[str, Sequence[object], Mapping[str, object]], Any]
"""Makes the call of that name with these arguments, and gives its result."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"), {})
    yield server.start()
    server.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server for one test alone, not started."""
    server = Server(tmp_path, {})
    yield server
    server.stop()


@pytest.fixture(params=list(SerializeType), ids=lambda kind: kind.name)
def options(request: pytest.FixtureRequest) -> RemotingOptions:
    return RemotingOptions(serialize_type=request.param)


def test_every_call_of_the_blocking_face(server: Server, options: RemotingOptions) -> None:
    with NameServer(f"127.0.0.1:{server.port}", options=options, timeout_s=30) as ns:
        play(lambda name, args, more: getattr(ns, name)(*args, **more))


def test_every_call_of_the_asynchronous_face(server: Server, options: RemotingOptions) -> None:
    with asyncio.Runner() as runner:

        async def opened() -> AsyncNameServer:
            return AsyncNameServer(f"127.0.0.1:{server.port}", options=options, timeout_s=30)

        ns = runner.run(opened())
        play(lambda name, args, more: runner.run(getattr(ns, name)(*args, **more)))
        runner.run(ns.close())


def play(made: Play) -> None:
    """Go through all calls; the server is at the end as it was at the beginning."""

    def ask(name: str, *args: object, **more: object) -> Any:
        return made(name, args, more)

    assert ask("get_topics") == TopicList(())
    assert ask("get_route", "TA") is None
    _kv(ask)
    _registrations(ask)
    _brokers_and_routes(ask)
    _topics(ask)
    _configuration(ask)
    for broker in (SLAVE, MASTER):
        ask("unregister_broker", broker)
    assert ask("get_route", "TA") is None
    assert ask("get_cluster_info") == ClusterInfo({}, {})


Ask = Callable[..., Any]


def _kv(ask: Ask) -> None:
    assert ask("get_kv_list", "never put") is None
    assert ask("get_kv_config", ORDER, "TA") is None
    assert ask("put_kv_config", ORDER, "TA", value="broker-a:4;中文") is None
    assert ask("get_kv_config", ORDER, "TA") == "broker-a:4;中文"
    assert ask("get_kv_list", ORDER) == KVTable({"TA": "broker-a:4;中文"})


def _registrations(ask: Ask) -> None:
    order = KVTable({"TA": "broker-a:4;中文"})
    told = ask("register_broker", MASTER, PLAIN, ha_server_addr="127.10.0.1:10912")
    assert told == Registered(None, None, order)
    told = ask(
        "register_broker",
        SLAVE,
        COMPRESSED,
        ha_server_addr="127.10.0.2:10912",
        compressed=True,
        enable_acting_master=False,
        heartbeat_timeout_ms=60_000,
    )
    assert told == Registered("127.10.0.1:10912", MASTER.broker_addr, order)
    with pytest.raises(AnswerError, match="Failed to decode"):
        ask("register_broker", MASTER, b"{", ha_server_addr="")
    assert ask("query_data_version", MASTER, VERSION) == VersionAnswer(False, VERSION)
    assert ask("query_data_version", MASTER, VERSION, as_4x=True) == VersionAnswer(False, VERSION)
    assert ask("query_data_version", MASTER, DataVersion(0, 1001, 2)) == VersionAnswer(True, VERSION)
    assert ask("broker_heartbeat", MASTER) is None
    assert ask("delete_kv_config", ORDER, "TA") is None
    assert ask("get_kv_list", ORDER) == KVTable({})


def _brokers_and_routes(ask: Ask) -> None:
    addresses = {0: MASTER.broker_addr, 1: SLAVE.broker_addr}
    brokers = BrokerData("c1", "broker-a", addresses)
    queues = QueueData("broker-a", 8, 8, 6, 0)
    assert ask("get_route", "TA") == TopicRouteData((brokers,), (queues,))
    assert ask("get_cluster_info") == ClusterInfo({"broker-a": brokers}, {"c1": ("broker-a",)})
    assert ask("get_broker_member_group", "c1", "broker-a") == BrokerMemberGroup("c1", "broker-a", addresses)
    assert ask("get_broker_member_group", "c1", "broker-x") == BrokerMemberGroup("c1", "broker-x", {})
    assert ask("wipe_write_perm", "broker-a") == 4
    assert ask("get_route", "TA").queue_datas[0].perm == 4
    assert ask("add_write_perm", "broker-a") == 4
    assert ask("get_route", "TA").queue_datas[0].perm == 6
    assert ask("add_write_perm", "broker-x") == 0


def _topics(ask: Ask) -> None:
    def listed(name: str, *args: str) -> set[str]:
        return set(ask(name, *args).topic_list)

    assert listed("get_topics") == set(TOPICS)
    assert listed("get_topics_of_cluster", "c1") == set(TOPICS)
    assert listed("get_topics_of_cluster", "c2") == set()
    system = ask("get_system_topics")
    assert (set(system.topic_list), system.broker_addr) == ({"c1", "broker-a"}, MASTER.broker_addr)
    assert listed("get_unit_topics") == {"Unit", "Both"}
    assert listed("get_unit_sub_topics") == {"Sub", "Both"}
    assert listed("get_unit_sub_ununit_topics") == {"Sub"}
    ask("register_topic", "TN", [QueueData("broker-a", 2, 2, 6, 0)])
    assert ask("get_route", "TN").queue_datas == (QueueData("broker-a", 2, 2, 6, 0),)
    ask("delete_topic", "TN", "c2")
    assert ask("get_route", "TN") is not None
    ask("delete_topic", "TN", cluster="c1")
    assert ask("get_route", "TN") is None
    ask("delete_topic", "Both")
    assert listed("get_unit_topics") == {"Unit"}


def _configuration(ask: Ask) -> None:
    for order in ("true", "false"):
        ask("update_config", {"orderMessageEnable": order})
        assert ask("get_config")["orderMessageEnable"] == order
    with pytest.raises(AnswerError) as error:
        ask("update_config", {"kvConfigPath": "elsewhere"})
    assert error.value.code == 16
    with pytest.raises(AnswerError, match="request type 47 not supported"):
        ask("get_client_config", ["k"])


def test_a_oneway_call_is_heard(server: Server) -> None:
    with NameServer(f"127.0.0.1:{server.port}") as ns:
        ns.oneway(calls.put_kv_config("oneway", "k", "v"))
        eventually(lambda: ns.get_kv_config("oneway", "k") == "v", 5)


def test_over_tls(server: Server) -> None:
    options = RemotingOptions(tls=client_context(auth_server=False))
    with NameServer(f"127.0.0.1:{server.port}", options=options, timeout_s=30) as ns:
        assert ns.get_topics() == TopicList(())


def test_one_that_goes_away_is_left_for_another(server: Server, own: Server) -> None:
    own.options |= {"enableShutdownGracefully": "true", "shutdownWaitTimeSeconds": "3"}
    own.start()
    address, other = f"127.0.0.1:{own.port}", f"127.0.0.1:{server.port}"
    with NameServer(address, timeout_s=30) as ns, NameServer(other) as second:
        second.put_kv_config("who", "k", "the other")
        assert ns.get_kv_config("who", "k") is None
        ns.set_addresses([address, other])
        own.begin_stop()
        eventually(lambda: ns.get_kv_config("who", "k") == "the other", 20)
        second.delete_kv_config("who", "k")


def test_a_change_goes_to_all_in_turn(server: Server) -> None:
    local, other = f"127.0.0.1:{server.port}", f"127.0.0.2:{server.port}"
    call = calls.put_kv_config("in turn", "k", "v")
    with NameServer(local) as ns:
        assert ns.ask_all(call) == {local: None}
    with NameServer([local, other]) as ns, pytest.raises(ConnectError) as error:
        ns.ask_all(call)
    assert error.value.address == other


def test_a_server_that_ends_and_comes_back(own: Server) -> None:
    own.start()
    with NameServer(f"127.0.0.1:{own.port}", timeout_s=30) as ns:
        ns.put_kv_config("ns", "k", "v")
        own.stop()
        with pytest.raises((ConnectError, ConnectionClosed)):
            ns.get_topics()
        with pytest.raises(ConnectError, match="Connection refused"):
            ns.get_topics()
        own.options["listenPort"] = str(own.port)
        own.start()
        assert ns.get_topics() == TopicList(())
        with pytest.raises(CallTimeout):
            ns.within(0).get_topics()
