"""Topics and permissions changed on the side: 216, 217, 205, 327 (docs/conformance.md, TOP and PRM)."""

from typing import Any

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from testbed.broker import TB, A, B, Broker, Topic, as_json
from testbed.connection import Connection
from testbed.scene import Scene


def delete(over: Connection, topic: str, **ext: str) -> Command:
    return over.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic} | ext)


@pytest.mark.conformance("TOP-01")
def test_a_topic_is_deleted(ns: Scene) -> None:
    ns.f3()
    assert delete(ns.k2, "TA").code == 0
    assert ns.route_answer("TA").code == 17
    assert ns.topics() == {"TB", "TC"}


@pytest.mark.conformance("TOP-02")
def test_an_unknown_topic_is_deleted(ns: Scene) -> None:
    ns.f3()
    assert delete(ns.k2, "nope").code == 0
    assert ns.topics() == {"TA", "TB", "TC"}


@pytest.mark.conformance("TOP-03", "TOP-04")
def test_a_topic_is_deleted_cluster_by_cluster(ns: Scene) -> None:
    ns.f1()
    other = Broker("broker-d", addr="127.10.0.4:10911", cluster="c2")
    assert other.register(ns.k3).code == 0
    assert delete(ns.k2, "TA", clusterName="c1").code == 0
    assert set(ns.addresses("TA")) == {"broker-d"}
    assert delete(ns.k2, "TA", clusterName="c2").code == 0
    assert not ns.has_route("TA")


@pytest.mark.conformance("TOP-05")
def test_a_topic_is_deleted_in_an_unknown_cluster(ns: Scene) -> None:
    ns.f1()
    assert delete(ns.k2, "TA", clusterName="nope").code == 0
    assert ns.has_route("TA")


def queue_data(name: str, perm: int = 6) -> dict[str, Any]:
    return {"brokerName": name, "perm": perm, "readQueueNums": 8, "topicSysFlag": 0, "writeQueueNums": 8}


def register(over: Connection, topic: str, body: bytes) -> Command:
    return over.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": topic}, body, version=479)


def queues(*datas: dict[str, Any]) -> bytes:
    return as_json({"brokerDatas": [], "queueDatas": list(datas)})


@pytest.mark.conformance("TOP-07")
def test_a_topic_is_registered(ns: Scene) -> None:
    ns.f1()
    assert register(ns.k2, "TN", queues(queue_data("broker-a"))).code == 0
    assert ns.perms("TN") == {"broker-a": 6}
    assert ns.addresses("TN") == {"broker-a": {0: A.addr}}


@pytest.mark.conformance("TOP-08")
def test_a_known_topic_is_registered_for_one_broker(ns: Scene) -> None:
    ns.f3()
    assert register(ns.k2, "TA", queues(queue_data("broker-b", perm=4))).code == 0
    assert ns.perms("TA") == {"broker-a": 6, "broker-b": 4}


@pytest.mark.conformance("TOP-09")
def test_a_new_topic_is_registered_for_an_unknown_broker(ns: Scene) -> None:
    ns.f1()
    assert register(ns.k2, "TN", queues(queue_data("no-such-broker"))).code == 0
    assert not ns.has_route("TN")


@pytest.mark.conformance("TOP-10")
def test_a_registration_stops_at_an_unknown_broker(ns: Scene) -> None:
    ns.f1()
    body = queues(queue_data("broker-a", perm=4), queue_data("no-such-broker"))
    assert register(ns.k2, "TA", body).code == 0
    assert ns.perms("TA") == {"broker-a": 4}


@pytest.mark.conformance("TOP-11")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(queues(), id="no queues"),
        pytest.param(b"", id="no body"),
        pytest.param(b"null", id="a null"),
        pytest.param(b'{"brokerDatas":[null],"queueDatas":[null]}', id="nulls in lists"),
    ],
)
def test_a_topic_is_registered_without_queues(ns: Scene, body: bytes) -> None:
    ns.f1()
    assert register(ns.k2, "TN", body).code == 0
    assert not ns.has_route("TN")


@pytest.mark.conformance("TOP-12")
def test_a_topic_is_registered_in_the_legacy_dialect(ns: Scene) -> None:
    ns.f1()
    body = queues(queue_data("broker-a")).replace(
        b'"brokerDatas":[]',
        b'"brokerDatas":[{"brokerAddrs":{0:"127.10.0.1:10911"},"brokerName":"broker-a","cluster":"c1"}]',
    )
    assert register(ns.k2, "TN", body).code == 0
    assert ns.perms("TN") == {"broker-a": 6}


def wipe(over: Connection, name: str) -> dict[str, str]:
    answer = over.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": name})
    assert answer.code == 0
    return answer.ext or {}


def add(over: Connection, name: str) -> dict[str, str]:
    answer = over.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": name})
    assert answer.code == 0
    return answer.ext or {}


@pytest.mark.conformance("PRM-01", "PRM-02")
def test_write_permission_is_wiped(ns: Scene) -> None:
    ns.f1()
    for _ in range(2):
        assert wipe(ns.k2, "broker-a") == {"wipeTopicCount": "2"}
        assert [ns.perms(topic) for topic in ("TA", "TB")] == [{"broker-a": 4}] * 2


@pytest.mark.conformance("PRM-03")
def test_write_permission_of_an_unknown_broker_is_wiped(ns: Scene) -> None:
    ns.f1()
    assert wipe(ns.k2, "no-such-broker") == {"wipeTopicCount": "0"}


@pytest.mark.conformance("PRM-04")
def test_only_the_write_bit_is_wiped(ns: Scene) -> None:
    ns.f1(topics=(Topic("TA", perm=2), TB))
    wipe(ns.k2, "broker-a")
    assert ns.perms("TA") == {"broker-a": 0}


@pytest.mark.conformance("PRM-05")
@pytest.mark.parametrize("perm", [4, 7, 0])
def test_write_permission_is_added(ns: Scene, perm: int) -> None:
    ns.f1(topics=(Topic("TA", perm=perm), TB))
    assert add(ns.k2, "broker-a") == {"addTopicCount": "2"}
    assert ns.perms("TA") == {"broker-a": 6}


@pytest.mark.conformance("PRM-06")
def test_write_permission_is_added_to_no_broker(ns: Scene) -> None:
    ns.f1()
    assert add(ns.k2, "no-such-broker") == {"addTopicCount": "0"}


@pytest.mark.conformance("PRM-07")
def test_other_brokers_keep_their_permission(ns: Scene) -> None:
    ns.f3()
    wipe(ns.k2, "broker-a")
    assert ns.perms("TA") == {"broker-a": 4, "broker-b": 6}
    assert set(ns.addresses("TA")) == {A.name, B.name}


@pytest.mark.conformance("PRM-08", "PRM-09")
@pytest.mark.parametrize(
    ("counter", "perm"),
    [
        pytest.param(1, 4, id="same data version", marks=pytest.mark.conformance("PRM-08")),
        pytest.param(2, 6, id="new data version", marks=pytest.mark.conformance("PRM-09")),
    ],
)
def test_a_wiped_broker_registers_again(ns: Scene, counter: int, perm: int) -> None:
    broker = ns.f1()
    wipe(ns.k2, "broker-a")
    assert broker.but(counter=counter).register(ns.k1).code == 0
    assert ns.perms("TA") == {"broker-a": perm}
