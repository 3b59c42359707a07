"""UNREGISTER_BROKER, expiry, closed connections (docs/conformance.md, 104).

Where the row speaks of 120 s, the server's `brokerTimeoutMillis` is 1000 here and other times shrink with it.
"""

import time

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from testbed.broker import A1, TA, TB, A, B
from testbed.connection import Connection
from testbed.eventually import eventually, stays
from testbed.scene import Scene

LEASE_S = 1.0
LEASE_OF_ITS_OWN_S = 2.0
"""For a test that renews it: on a busy machine that may be ten times later than it means to."""


def gone(ns: Scene) -> bool:
    """Whether nothing is registered any more."""
    empty = (
        ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
    )
    return empty and ns.topics() == set() and ns.route_answer("TA").code == 17


@pytest.mark.conformance("104-01")
def test_the_only_broker_leaves(ns: Scene) -> None:
    answer = ns.f1().unregister(ns.k1)
    assert (answer.code, answer.body) == (0, b"")
    eventually(lambda: gone(ns))


@pytest.mark.conformance("104-02")
def test_the_slave_leaves(ns: Scene) -> None:
    assert ns.f2().unregister(ns.k2).code == 0
    eventually(lambda: ns.brokers() == {"broker-a": {0: A.addr}})
    assert ns.topics() == {"TA", "TB"}


@pytest.mark.parametrize(
    ("acting", "perm"),
    [
        pytest.param(None, 6, id="no acting master", marks=pytest.mark.conformance("104-03")),
        pytest.param(True, 4, id="acting master", marks=pytest.mark.conformance("104-04")),
    ],
)
def test_the_master_leaves_its_slave(ns: Scene, acting: bool | None, perm: int) -> None:
    ns.f2(acting=acting)
    assert A.unregister(ns.k1).code == 0
    eventually(lambda: ns.brokers() == {"broker-a": {1: A1.addr}})
    eventually(lambda: ns.perms("TA") == {"broker-a": perm})
    assert ns.addresses("TA") == {"broker-a": {1: A1.addr}}


@pytest.mark.conformance("104-05")
def test_one_of_two_brokers_leaves(ns: Scene) -> None:
    ns.f3()
    assert A.unregister(ns.k1).code == 0
    eventually(lambda: ns.topics() == {"TA", "TC"})
    assert set(ns.addresses("TA")) == set(ns.queues("TA")) == {"broker-b"}
    assert ns.clusters() == {"c1": {"broker-b"}}


@pytest.mark.conformance("104-06")
def test_a_broker_of_two_clusters_leaves_both(ns: Scene) -> None:
    ns.f1().but(cluster="c2").register(ns.k1)
    A.unregister(ns.k1)
    eventually(lambda: gone(ns))


@pytest.mark.conformance("104-07")
def test_an_unknown_broker_leaves(ns: Scene) -> None:
    assert A.unregister(ns.k1).code == 0


@pytest.mark.conformance("104-08", "104-11")
@pytest.mark.parametrize(
    "given",
    [
        pytest.param("7", id="wrong", marks=pytest.mark.conformance("104-08")),
        pytest.param(None, id="missing", marks=pytest.mark.conformance("104-11")),
    ],
)
def test_the_address_decides_and_not_the_id(ns: Scene, given: str | None) -> None:
    assert ns.f1().unregister(ns.k1, brokerId=given).code == 0
    eventually(lambda: gone(ns))


@pytest.mark.conformance("104-10")
def test_another_address_removes_nothing(ns: Scene) -> None:
    assert ns.f1().but(addr="127.10.0.9:10911").unregister(ns.k1).code == 0
    stays(lambda: ns.brokers() == {"broker-a": {0: A.addr}}, for_s=0.3)


@pytest.mark.conformance("104-29")
def test_whoever_names_another_cluster_leaves_all_the_same(ns: Scene) -> None:
    registered = ns.f1()
    assert registered.but(cluster="c2").unregister(ns.k1).code == 0
    eventually(lambda: gone(ns))
    assert registered.query(ns.k1).ext == {"changed": "true"}


@pytest.mark.conformance("104-12")
def test_two_brokers_leave_in_quick_succession(ns: Scene) -> None:
    ns.f3()
    ns.k1.send(b"".join(leave(n, broker.identity()) for n, broker in enumerate((A, B))))
    assert {ns.k1.receive().code, ns.k1.receive().code} == {0}
    eventually(lambda: gone(ns))


def leave(opaque: int, identity: dict[str, str]) -> bytes:
    return encode(Command(int(RequestCode.UNREGISTER_BROKER), opaque, version=373, ext=identity))


@pytest.mark.conformance("104-13")
@pytest.mark.server("crowded")
def test_more_removals_at_once_than_may_wait(ns: Scene) -> None:
    many = [A.but(addr=f"127.10.9.{n}:10911").identity() for n in range(50)]
    ns.k1.send(b"".join(leave(n, identity) for n, identity in enumerate(many)))
    answers = [ns.k1.receive() for _ in many]
    assert {(answer.code, answer.remark) for answer in answers if answer.code != 2} == {(0, None), (1, None)}
    assert ns.f1().unregister(ns.k1).code == 0
    eventually(lambda: gone(ns))


def ended(over: Connection) -> bool:
    """Asks for a route and tells whether the server has closed the connection instead of answering."""
    try:
        assert over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}).code in (0, 17)
    except ConnectionError:
        return True
    return False


@pytest.mark.conformance("104-14", "104-16", "104-26")
@pytest.mark.server("short")
def test_other_traffic_does_not_keep_a_broker_alive(ns: Scene) -> None:
    lease_from = time.monotonic()
    ns.f1()

    def stays_in_the_lease() -> bool:
        lives = not ended(ns.k1) and bool(ns.brokers())
        return lives or time.monotonic() > lease_from + LEASE_S  # an answer may be late on a busy machine

    stays(stays_in_the_lease, for_s=0.7 * LEASE_S)
    eventually(lambda: (ended(ns.k1) or True) and not ns.brokers())
    assert not ns.has_route("TA")
    eventually(lambda: ended(ns.k1))


@pytest.mark.conformance("104-15", "104-17")
@pytest.mark.server("short")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(RequestCode.REGISTER_BROKER, id="registration", marks=pytest.mark.conformance("104-15")),
        pytest.param(RequestCode.BROKER_HEARTBEAT, id="heartbeat", marks=pytest.mark.conformance("104-17")),
        pytest.param(
            RequestCode.QUERY_DATA_VERSION, id="data version", marks=pytest.mark.conformance("104-17")
        ),
    ],
)
def test_what_keeps_a_broker_alive(ns: Scene, code: RequestCode) -> None:
    broker = ns.f1(timeout_ms=int(1000 * LEASE_OF_ITS_OWN_S))

    def heartbeat() -> bool:
        if code is RequestCode.REGISTER_BROKER:
            answer = broker.register(ns.k1)
        elif code is RequestCode.QUERY_DATA_VERSION:
            answer = broker.query(ns.k1)
        else:
            answer = ns.k1.ask(code, broker.identity())
        return answer.code == 0 and ns.brokers() == {"broker-a": {0: A.addr}} and ns.has_route("TA")

    stays(heartbeat, for_s=2.5 * LEASE_OF_ITS_OWN_S, every_s=0.1 * LEASE_OF_ITS_OWN_S)


@pytest.mark.conformance("104-19", "104-20")
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Connection.close, id="closed", marks=pytest.mark.conformance("104-19")),
        pytest.param(Connection.reset, id="reset", marks=pytest.mark.conformance("104-20")),
    ],
)
def test_a_broker_goes_with_its_connection(ns: Scene, end: object) -> None:
    ns.f1()
    assert callable(end)
    end(ns.k1)
    eventually(lambda: gone(ns))


@pytest.mark.conformance("104-21", "104-22")
def test_the_newer_connection_counts(ns: Scene) -> None:
    k9 = ns.connect(ns.server.workers - 1)
    ns.f1().register(k9)
    ns.k1.close()
    stays(lambda: ns.brokers() == {"broker-a": {0: A.addr}} and ns.has_route("TA"), for_s=0.8)
    k9.close()
    eventually(lambda: gone(ns))


@pytest.mark.conformance("104-23")
def test_a_slave_stays_when_its_masters_connection_ends(ns: Scene) -> None:
    ns.f2()
    ns.k1.close()
    eventually(lambda: ns.brokers() == {"broker-a": {1: A1.addr}})
    assert ns.topics() == {"TA", "TB"}


@pytest.mark.conformance("104-24")
def test_all_brokers_of_a_connection_go_with_it(ns: Scene) -> None:
    ns.f1()
    B.register(ns.k1)
    ns.k1.close()
    eventually(lambda: gone(ns))


@pytest.mark.conformance("104-25")
def test_the_end_of_a_plain_connection_changes_nothing(ns: Scene) -> None:
    ns.f1()
    client = ns.connect()
    assert client.usable()
    client.close()
    stays(lambda: ns.brokers() == {"broker-a": {0: A.addr}} and ns.has_route("TA"), for_s=0.3)


@pytest.mark.conformance("104-27")
def test_an_address_that_lost_its_id_leaves_nothing_behind(ns: Scene) -> None:
    loser = ns.f1(timeout_ms=500)
    winner = loser.but(addr="127.10.0.9:10911", timeout_ms=None)
    assert winner.register(ns.k3).code == 0
    eventually(lambda: loser.query(ns.k2).body == b"")
    stays(lambda: ns.brokers() == {"broker-a": {0: winner.addr}} and ns.has_route("TA"), for_s=0.8)


@pytest.mark.conformance("104-28")
def test_a_deleted_topic_comes_back_with_the_next_registration(ns: Scene) -> None:
    broker = ns.f1()
    assert ns.k1.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "TA"}).code == 0
    assert not ns.has_route("TA")
    assert broker.but(topics=(TA, TB)).register(ns.k1).code == 0
    assert ns.has_route("TA")
