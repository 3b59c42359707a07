"""Every call, in an order in which each can be seen to have done something."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from mqns.errors import ResponseError
from mqns.name_server.calls import BrokerIdentity, QueryDataVersionResult, RegisterBrokerResult
from rocketmq_remoting.cluster import BrokerMemberGroup, ClusterInfo
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.kv_table import KVTable
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_list import TopicList
from rocketmq_remoting.version import CURRENT, V5_0_0
from testbed.eventually import PATIENCE_S, eventually

MASTER = BrokerIdentity("c1", "broker-a", "127.10.0.1:10911", 0)
SLAVE = BrokerIdentity("c1", "broker-a", "127.10.0.2:10911", 1)
VERSION = DataVersion(0, 1000, 1)
TOPICS = {
    name: TopicConfig(name, 8, 8, 6, flag) for name, flag in {"TA": 0, "Unit": 1, "Sub": 2, "Both": 3}.items()
}
BODY = RegisterBrokerBody(VERSION, TOPICS, TOPICS.keys())
ORDER = "ORDER_TOPIC_CONFIG"

Play = Callable[[str, Sequence[object], Mapping[str, object]], Any]
"""Makes the call of that name with these arguments, and gives its result."""


def play(made: Play, version: int = CURRENT, *, unregisters_later: bool = False) -> None:
    """Go through all calls that this version has; the server is at the end as it was at the beginning.

    `unregisters_later`: it answers a moment before it takes a broker out, as Java's of 5.x do."""
    is_5x = version >= V5_0_0

    def ask(name: str, *args: object, **more: object) -> Any:
        return made(name, args, more)

    assert ask("get_topics") == TopicList(())
    assert ask("get_route", "TA") is None
    _kv(ask)
    _registrations(ask, version)
    _brokers_and_routes(ask)
    _topics(ask)
    _configuration(ask)
    if is_5x:
        _since_5_0(ask)
    for broker in (SLAVE, MASTER):
        ask("unregister_broker", broker)
    eventually(lambda: ask("get_route", "TA") is None, PATIENCE_S if unregisters_later else 0)
    assert ask("get_cluster_info") == ClusterInfo({}, {})


Ask = Callable[..., Any]


def _kv(ask: Ask) -> None:
    assert ask("get_kv_list", "never put") is None
    assert ask("get_kv_config", ORDER, "TA") is None
    assert ask("put_kv_config", ORDER, "TA", value="broker-a:4;中文") is None
    assert ask("get_kv_config", ORDER, "TA") == "broker-a:4;中文"
    assert ask("get_kv_list", ORDER) == KVTable({"TA": "broker-a:4;中文"})


def _registrations(ask: Ask, version: int) -> None:
    plain, compressed = (
        encode_register_broker_body(BODY, version=version, compressed=compressed)
        for compressed in (False, True)
    )
    order = KVTable({"TA": "broker-a:4;中文"})
    reported = ask("register_broker", MASTER, plain, ha_server_addr="127.10.0.1:10912")
    assert reported == RegisterBrokerResult(None, None, order)
    reported = ask(
        "register_broker",
        SLAVE,
        compressed,
        ha_server_addr="127.10.0.2:10912",
        compressed=True,
        enable_acting_master=False,
        heartbeat_timeout_ms=60_000,
    )
    assert reported == RegisterBrokerResult("127.10.0.1:10912", MASTER.broker_addr, order)
    with pytest.raises(ResponseError, match="Failed to decode"):
        ask("register_broker", MASTER, b"{", ha_server_addr="")
    assert ask("query_data_version", MASTER, VERSION) == QueryDataVersionResult(False, VERSION)
    assert ask("query_data_version", MASTER, VERSION, as_4x=True) == QueryDataVersionResult(False, VERSION)
    assert ask("query_data_version", MASTER, DataVersion(0, 1001, 2)) == QueryDataVersionResult(True, VERSION)
    assert ask("delete_kv_config", ORDER, "TA") is None
    assert ask("get_kv_list", ORDER) == KVTable({})


def _brokers_and_routes(ask: Ask) -> None:
    addresses = {0: MASTER.broker_addr, 1: SLAVE.broker_addr}
    brokers = BrokerData("c1", "broker-a", addresses)
    queues = QueueData("broker-a", 8, 8, 6, 0)
    assert ask("get_route", "TA") == TopicRouteData((brokers,), (queues,))
    assert ask("get_cluster_info") == ClusterInfo({"broker-a": brokers}, {"c1": ("broker-a",)})
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
    ask("delete_topic", "Both", "c2")
    assert ask("get_route", "Both") is not None
    ask("delete_topic", "Both", cluster="c1")
    assert ask("get_route", "Both") is None
    assert listed("get_unit_topics") == {"Unit"}


def _configuration(ask: Ask) -> None:
    for order in ("true", "false"):
        ask("update_config", {"orderMessageEnable": order})
        assert ask("get_config")["orderMessageEnable"] == order
    with pytest.raises(ResponseError) as error:
        ask("update_config", {"kvConfigPath": "elsewhere"})
    assert error.value.code == 16


def _since_5_0(ask: Ask) -> None:
    assert ask("broker_heartbeat", MASTER) is None
    addresses = {0: MASTER.broker_addr, 1: SLAVE.broker_addr}
    assert ask("get_broker_member_group", "c1", "broker-a") == BrokerMemberGroup("c1", "broker-a", addresses)
    assert ask("get_broker_member_group", "c1", "broker-x") == BrokerMemberGroup("c1", "broker-x", {})
    ask("register_topic", "TN", [QueueData("broker-a", 2, 2, 6, 0)])
    assert ask("get_route", "TN").queue_datas == (QueueData("broker-a", 2, 2, 6, 0),)
    ask("delete_topic", "TN")
    assert ask("get_route", "TN") is None
    with pytest.raises(ResponseError, match="request type 47 not supported"):
        ask("get_client_config", ["k"])
