"""GET_BROKER_CLUSTER_INFO and the topic lists (docs/conformance.md, 106 and LST)."""

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.topic_list import decode_topic_list
from testbed.broker import A1, A, B, Topic
from testbed.scene import Scene

UNIT = RequestCode.GET_UNIT_TOPIC_LIST
UNIT_SUB = RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST
UNIT_SUB_UNUNIT = RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST
OF_CLUSTER = RequestCode.GET_TOPICS_BY_CLUSTER
ALL = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
SYSTEM = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS


@pytest.mark.conformance("106-01")
def test_cluster_info_of_nothing(ns: Scene) -> None:
    answer = ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
    assert (answer.code, answer.body) == (0, b'{"brokerAddrTable":{},"clusterAddrTable":{}}')


@pytest.mark.conformance("106-02")
@pytest.mark.parametrize("version", [373, 479])
def test_cluster_info_of_two_brokers(ns: Scene, version: int) -> None:
    ns.f3()
    assert ns.brokers() == {"broker-a": {0: A.addr}, "broker-b": {0: B.addr}}
    assert ns.clusters() == {"c1": {"broker-a", "broker-b"}}
    body = ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO, version=version).body
    assert b'{0:"127.10.0.1:10911"}' in body
    assert b'{0:"127.10.0.3:10911"}' in body


@pytest.mark.conformance("106-03")
def test_cluster_info_of_a_group(ns: Scene) -> None:
    ns.f2()
    assert ns.brokers() == {"broker-a": {0: A.addr, 1: A1.addr}}


@pytest.mark.conformance("LST-01")
def test_no_topics(ns: Scene) -> None:
    answer = ns.ask(ALL)
    assert (answer.code, answer.body) == (0, b'{"topicList":[]}')


@pytest.mark.conformance("LST-02", "LST-04")
@pytest.mark.parametrize(
    ("code", "ext"),
    [
        pytest.param(ALL, {}, id="all", marks=pytest.mark.conformance("LST-02")),
        pytest.param(
            OF_CLUSTER, {"cluster": "c1"}, id="of the cluster", marks=pytest.mark.conformance("LST-04")
        ),
    ],
)
def test_topics_of_two_brokers(ns: Scene, code: RequestCode, ext: dict[str, str]) -> None:
    ns.f3()
    assert ns.topics(code, **ext) == {"TA", "TB", "TC"}


@pytest.mark.conformance("LST-05")
@pytest.mark.parametrize("ext", [{"cluster": "nope"}, {}], ids=["unknown", "missing"])
def test_topics_of_no_cluster(ns: Scene, ext: dict[str, str]) -> None:
    ns.f3()
    answer = ns.ask(OF_CLUSTER, ext)
    assert (answer.code, answer.body) == (0, b'{"topicList":[]}')


@pytest.mark.server("options")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(ALL, marks=pytest.mark.conformance("LST-03")),
        *(
            pytest.param(code, marks=pytest.mark.conformance("LST-06"))
            for code in (OF_CLUSTER, UNIT, UNIT_SUB, UNIT_SUB_UNUNIT)
        ),
    ],
)
def test_lists_can_be_disabled(ns: Scene, code: RequestCode) -> None:
    ns.f1()
    answer = ns.ask(code, {"cluster": "c1"})
    assert (answer.code, answer.remark, answer.body) == (1, "disable", b"")


@pytest.mark.conformance("LST-06")
@pytest.mark.server("options")
def test_the_system_list_cannot_be_disabled(ns: Scene) -> None:
    ns.f1()
    assert ns.topics(SYSTEM) == {"c1", "broker-a"}


@pytest.mark.conformance("LST-07")
def test_system_topics(ns: Scene) -> None:
    ns.f3()
    assert ns.topics(SYSTEM) == {"c1", "broker-a", "broker-b"}
    assert decode_topic_list(ns.k1.ask(SYSTEM).body).broker_addr in {A.addr, B.addr}


@pytest.mark.conformance("LST-08")
def test_no_system_topics(ns: Scene) -> None:
    answer = ns.ask(SYSTEM)
    assert (answer.code, answer.body) == (0, b'{"topicList":[]}')


@pytest.mark.conformance("LST-09")
@pytest.mark.parametrize(
    ("code", "topics"),
    [(UNIT, {"T1", "T3"}), (UNIT_SUB, {"T2", "T3"}), (UNIT_SUB_UNUNIT, {"T2"})],
)
def test_unit_topics(ns: Scene, code: RequestCode, topics: set[str]) -> None:
    ns.f1(topics=tuple(Topic(f"T{flag}", flag=flag) for flag in range(4)))
    assert ns.topics(code) == topics
