"""GET_ROUTEINFO_BY_TOPIC (docs/conformance.md, 105).

Waiting for service takes 2 s here instead of 45.
"""

import json
from collections.abc import Callable

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.route import decode_route
from testbed.broker import A1, A, B, Broker, Topic
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.scene import ORDER_TOPIC_CONFIG, Scene

UNKNOWN = "No topic route info in name server for the topic: {}\nSee "
FAQ = "https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
ADDRS = b'"brokerAddrs":{%s:"127.10.0.1:10911"}'
UNQUOTED, QUOTED = ADDRS % b"0", ADDRS % b'"0"'
ROUTE_OF_TA = {
    "brokerDatas": [
        {
            "brokerAddrs": {"0": "127.10.0.1:10911"},
            "brokerName": "broker-a",
            "cluster": "c1",
            "enableActingMaster": False,
        }
    ],
    "filterServerTable": {},
    "queueDatas": [
        {"brokerName": "broker-a", "perm": 6, "readQueueNums": 8, "topicSysFlag": 0, "writeQueueNums": 8}
    ],
}


@pytest.mark.parametrize(
    ("version", "ext", "written"),
    [
        pytest.param(373, {}, UNQUOTED, id="4.8.0", marks=pytest.mark.conformance("105-01")),
        pytest.param(317, {}, UNQUOTED, id="Go", marks=pytest.mark.conformance("105-02")),
        pytest.param(401, {}, QUOTED, id="4.9.4", marks=pytest.mark.conformance("105-03")),
        pytest.param(
            373,
            {"acceptStandardJsonOnly": "true"},
            QUOTED,
            id="standard JSON wanted",
            marks=pytest.mark.conformance("105-04"),
        ),
        pytest.param(400, {}, UNQUOTED, id="just before 4.9.4", marks=pytest.mark.conformance("105-05")),
    ],
)
def test_a_route_in_the_dialect_of_its_reader(
    ns: Scene, version: int, ext: dict[str, str], written: bytes
) -> None:
    ns.f1()
    answer = ns.route_answer("TA", ext, version=version)
    assert answer.code == 0
    assert written in answer.body
    assert b" " not in answer.body
    assert json.loads(answer.body.replace(UNQUOTED, QUOTED)) == ROUTE_OF_TA


@pytest.mark.conformance("105-07", "105-08")
@pytest.mark.parametrize("version", [pytest.param(401, id="standard"), pytest.param(373, id="legacy")])
def test_a_broker_name_that_is_not_ascii(ns: Scene, version: int) -> None:
    assert A.but(name="é中").register(ns.k1).code == 0
    answer = ns.route_answer("TA", version=version)
    assert decode_route(answer.body).broker_datas[0].broker_name == "é中"
    if version < 401:
        assert '"brokerName":"é中"'.encode() in answer.body


@pytest.mark.conformance("105-09", "105-10", "105-12")
@pytest.mark.parametrize("topic", ["X", "thé中"])
def test_an_unknown_topic(ns: Scene, topic: str) -> None:
    ns.f1()
    answer = ns.route_answer(topic)
    assert (answer.code, answer.body) == (17, b"")
    assert answer.remark == UNKNOWN.format(topic) + FAQ


@pytest.mark.conformance("105-11")
def test_a_request_without_topic(ns: Scene) -> None:
    ns.f1()
    assert ns.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {}).code == 17


@pytest.mark.conformance("105-13")
def test_the_route_over_a_master_and_its_slave(ns: Scene) -> None:
    ns.f2()
    assert ns.addresses("TA") == {"broker-a": {0: A.addr, 1: A1.addr}}
    assert len(ns.route("TA").queue_datas) == 1


@pytest.mark.conformance("105-14")
def test_the_route_over_two_brokers(ns: Scene) -> None:
    ns.f3()
    assert ns.addresses("TA") == {"broker-a": {0: A.addr}, "broker-b": {0: B.addr}}
    assert set(ns.queues("TA")) == {"broker-a", "broker-b"}


@pytest.mark.conformance("105-15")
def test_the_members_of_5_x(ns: Scene) -> None:
    ns.f1()
    body = ns.route_answer("TA").body
    assert b'"enableActingMaster":false' in body
    assert b"zoneName" not in body


@pytest.mark.conformance("105-16")
def test_the_topics_flag(ns: Scene) -> None:
    ns.f1(topics=(Topic("TA", flag=3), Topic("TB")))
    assert b'"topicSysFlag":3' in ns.route_answer("TA").body


@pytest.mark.conformance("105-17")
def test_order_configuration_is_not_shown_by_default(ns: Scene) -> None:
    ns.f1()
    ns.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    assert b"orderTopicConf" not in ns.route_answer("TA").body


@pytest.mark.conformance("105-18")
@pytest.mark.server("options")
def test_order_configuration_is_shown_if_so_wanted(ns: Scene) -> None:
    ns.f1()
    assert ns.route("TA").order_topic_conf is None
    ns.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    assert ns.route("TA").order_topic_conf == "broker-a:4"
    assert b"orderTopicConf" not in ns.route_answer("TB").body


@pytest.mark.conformance("105-19", "105-20")
def test_routes_only_after_a_while(launch: Callable[..., NameServer]) -> None:
    server = launch(needWaitForService="true", waitSecondsForService="600")
    connection = Connection(server.port)
    body = A.body()
    connection.send_oneway(RequestCode.REGISTER_BROKER, A.ext(body), body)

    def route() -> Command:
        return connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"})

    first = route()
    assert (first.code, first.remark) == (1, "name server not ready")
    assert connection.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0
    connection.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"waitSecondsForService=3\n")
    eventually(lambda: route().code == 0)
    assert [route().code for _ in range(2)] == [0, 0]
    A.unregister(connection)
    connection.close()


SLAVE_1 = A1
SLAVE_2 = A1.but(id=2, addr="127.10.0.4:10911")
AS_IT_IS = {1: SLAVE_1.addr, 2: SLAVE_2.addr}
SYNC = "rmq_sys_SYNC_BROKER_MEMBER_broker-a"


@pytest.mark.server("options")
@pytest.mark.parametrize(
    ("acting", "perm", "topic", "addrs"),
    [
        pytest.param(
            True,
            4,
            "TA",
            {0: SLAVE_1.addr, 2: SLAVE_2.addr},
            id="the smallest id stands for the master",
            marks=pytest.mark.conformance("105-21"),
        ),
        pytest.param(True, 6, "TA", AS_IT_IS, id="not if writable", marks=pytest.mark.conformance("105-22")),
        pytest.param(
            False, 4, "TA", AS_IT_IS, id="not if not acting", marks=pytest.mark.conformance("105-23")
        ),
        pytest.param(
            True,
            4,
            SYNC,
            AS_IT_IS,
            id="not for the brokers' own topic",
            marks=pytest.mark.conformance("105-24"),
        ),
    ],
)
def test_an_acting_master(ns: Scene, acting: bool, perm: int, topic: str, addrs: dict[int, str]) -> None:
    topics = (Topic(topic, perm=4), Topic("TB"))
    for slave, over in ((SLAVE_1, ns.k1), (SLAVE_2, ns.k2)):
        assert slave.but(acting=acting, topics=topics).register(over).code == 0
    if perm == 6:
        assert ns.k1.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"}).code == 0
    assert ns.perms(topic) == {"broker-a": perm}
    assert ns.addresses(topic) == {"broker-a": addrs}


ZONE_1 = {"__ZONE_MODE": "true", "__ZONE_NAME": "z1"}


@pytest.mark.parametrize(
    ("ext", "names"),
    [
        pytest.param(ZONE_1, {"broker-a"}, id="its own zone", marks=pytest.mark.conformance("105-25")),
        pytest.param(
            ZONE_1 | {"__ZONE_NAME": "Z1"},
            {"broker-a"},
            id="case is ignored",
            marks=pytest.mark.conformance("105-26"),
        ),
        pytest.param(
            ZONE_1 | {"__ZONE_MODE": "false"},
            {"broker-a", "broker-b"},
            id="no zone mode",
            marks=pytest.mark.conformance("105-27"),
        ),
        pytest.param(
            {"__ZONE_MODE": "true"},
            {"broker-a", "broker-b"},
            id="no zone named",
            marks=pytest.mark.conformance("105-27"),
        ),
        pytest.param(
            ZONE_1 | {"__ZONE_NAME": "z9"},
            set(),
            id="a zone without brokers",
            marks=pytest.mark.conformance("105-29"),
        ),
    ],
)
def test_a_route_of_one_zone(ns: Scene, ext: dict[str, str], names: set[str]) -> None:
    two_zones(ns, B)
    assert set(ns.addresses("TA", ext)) == names
    assert {data.broker_name for data in ns.route("TA", ext).queue_datas} == names


def two_zones(ns: Scene, second: Broker) -> None:
    assert A.but(zone="z1").register(ns.k1).code == 0
    assert second.but(zone="z2").register(ns.k3).code == 0


@pytest.mark.conformance("105-28")
def test_a_broker_without_master_is_in_every_zone(ns: Scene) -> None:
    two_zones(ns, B.but(id=1, acting=False))
    assert set(ns.addresses("TA", ZONE_1)) == {"broker-a", "broker-b"}


@pytest.mark.conformance("105-30")
def test_a_route_of_one_zone_keeps_its_dialect(ns: Scene) -> None:
    two_zones(ns, B)
    assert QUOTED in ns.route_answer("TA", ZONE_1, version=479).body


@pytest.mark.conformance("105-31")
def test_an_unknown_topic_in_a_zone(ns: Scene) -> None:
    two_zones(ns, B)
    answer = ns.route_answer("X", ZONE_1)
    assert (answer.code, answer.remark) == (17, UNKNOWN.format("X") + FAQ)


@pytest.mark.conformance("105-32")
def test_a_topic_whose_brokers_are_all_unknown(ns: Scene) -> None:
    with ns.server.store() as store:
        store.hset(ns.server.keys.route("orphan"), "no-such-broker", "7,8,8,6,0")
        store.sadd(ns.server.keys.topics, "orphan")
        assert ns.route_answer("orphan").code == 17
        store.srem(ns.server.keys.topics, "orphan")
        store.delete(ns.server.keys.route("orphan"))
