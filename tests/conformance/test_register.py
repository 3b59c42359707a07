"""REGISTER_BROKER: what it does to brokers, topics and filter servers (docs/conformance.md, 103)."""

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.kv_table import decode_kv_table
from testbed.broker import A1, TA, TB, TC, A, B, Broker, Topic
from testbed.eventually import eventually, stays
from testbed.scene import ORDER_TOPIC_CONFIG, Scene

TA_READ_ONLY = Topic("TA", perm=4)
ELSEWHERE = "127.10.0.9:10911"


@pytest.mark.conformance("103-25")
def test_the_same_registration_again(ns: Scene) -> None:
    broker = ns.f1(timeout_ms=2000)
    before = ns.route_answer("TA").body, ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body

    def again() -> bool:
        assert broker.register(ns.k1).code == 0
        return before == (ns.route_answer("TA").body, ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)

    stays(again, for_s=2.6, every_s=0.3)


@pytest.mark.parametrize(
    ("registered", "counter", "perm"),
    [
        pytest.param(1, 2, 4, id="newer version", marks=pytest.mark.conformance("103-26")),
        pytest.param(1, 1, 6, id="same version", marks=pytest.mark.conformance("103-27")),
        pytest.param(5, 4, 4, id="older version", marks=pytest.mark.conformance("103-28")),
    ],
)
def test_a_changed_topic_counts_with_another_data_version(
    ns: Scene, registered: int, counter: int, perm: int
) -> None:
    broker = ns.f1(counter=registered)
    assert broker.but(counter=counter, topics=(TA_READ_ONLY, TB)).register(ns.k1).code == 0
    assert ns.perms("TA") == {"broker-a": perm}


@pytest.mark.conformance("103-29")
def test_a_new_topic_needs_no_new_data_version(ns: Scene) -> None:
    assert ns.f1().but(topics=(TA, TB, TC)).register(ns.k1).code == 0
    assert ns.topics() == {"TA", "TB", "TC"}


@pytest.mark.conformance("103-31")
def test_a_topic_left_out_stays(ns: Scene) -> None:
    assert ns.f1().but(topics=(TA, TC), counter=2).register(ns.k1).code == 0
    assert ns.topics() == {"TA", "TB", "TC"}


@pytest.mark.conformance("103-32")
@pytest.mark.server("options")
def test_a_topic_left_out_goes_if_so_wanted(ns: Scene) -> None:
    assert ns.f1().but(topics=(TA, TC), counter=2).register(ns.k1).code == 0
    assert (ns.has_route("TA"), ns.has_route("TB"), ns.has_route("TC")) == (True, False, True)


@pytest.mark.conformance("103-33")
@pytest.mark.server("options")
def test_a_topic_left_out_stays_with_other_brokers(ns: Scene) -> None:
    ns.f3()
    assert A.but(topics=(TB, Topic("TD")), counter=2).register(ns.k1).code == 0
    assert set(ns.addresses("TA")) == {"broker-b"}


@pytest.mark.conformance("103-34")
@pytest.mark.server("options")
def test_nothing_goes_with_a_registration_of_static_topics(ns: Scene) -> None:
    info = {"bname": "broker-a", "currIdMap": {"0": 0}, "epoch": 1, "topic": "TB", "totalQueues": 1}
    static = ns.f1().but(
        topics=(TB, TC), counter=2, acting=False, more_wrapper={"topicQueueMappingInfoMap": {"TB": info}}
    )
    assert static.register(ns.k1, version=479).code == 0
    assert ns.has_route("TA")


@pytest.mark.conformance("103-35")
@pytest.mark.server("options")
def test_an_increment_takes_the_other_topics_away_if_topics_left_out_go(ns: Scene) -> None:
    assert ns.f1().but(topics=(TC,), counter=2).register(ns.k1).code == 0
    assert (ns.has_route("TA"), ns.has_route("TB"), ns.has_route("TC")) == (False, False, True)


@pytest.mark.conformance("103-36", "103-37")
def test_a_first_registration_of_one_topic_is_refused(ns: Scene) -> None:
    answer = A.but(topics=(TA,)).register(ns.k1)
    assert (answer.code, answer.remark) == (1, "register broker failed")
    assert ns.topics() == set()


@pytest.mark.conformance("103-37")
def test_a_refused_registration_leaves_no_trace(ns: Scene) -> None:
    A.but(topics=(TA,)).register(ns.k1)
    assert ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'


@pytest.mark.conformance("103-38")
def test_an_increment_of_one_topic(ns: Scene) -> None:
    assert ns.f1().but(topics=(TC,), counter=2).register(ns.k1).code == 0
    assert ns.topics() == {"TA", "TB", "TC"}


@pytest.mark.conformance("103-40")
def test_a_slave_gets_its_master(ns: Scene) -> None:
    ns.f1()
    answer = A1.register(ns.k2)
    assert (answer.code, answer.ext) == (0, {"masterAddr": A.addr, "haServerAddr": A.ha})


@pytest.mark.conformance("103-41")
def test_a_slave_without_master(ns: Scene) -> None:
    answer = A1.register(ns.k2)
    assert (answer.code, answer.ext or {}) == (0, {})
    assert ns.brokers() == {"broker-a": {1: A1.addr}}


@pytest.mark.conformance("103-43")
def test_a_slave_beside_its_master_registers_no_topics(ns: Scene) -> None:
    ns.f1(acting=False)
    assert A1.but(acting=False, topics=(TA_READ_ONLY, TC), counter=2).register(ns.k2).code == 0
    assert ns.topics() == {"TA", "TB"}
    assert ns.perms("TA") == {"broker-a": 6}


@pytest.mark.parametrize(
    ("acting", "perm"),
    [
        pytest.param(True, 4, id="acting master", marks=pytest.mark.conformance("103-44")),
        pytest.param(False, 6, id="not acting", marks=pytest.mark.conformance("103-45")),
    ],
)
def test_the_first_slave_of_a_group_without_master_registers_topics(
    ns: Scene, acting: bool, perm: int
) -> None:
    assert A1.but(acting=acting).register(ns.k2).code == 0
    assert ns.perms("TA") == {"broker-a": perm}


@pytest.mark.conformance("103-46")
def test_a_master_that_comes_back_gives_write_permission_back(ns: Scene) -> None:
    assert A1.but(acting=True).register(ns.k2).code == 0
    assert A.but(acting=True).register(ns.k1).code == 0
    assert ns.perms("TA") == {"broker-a": 6}
    assert ns.addresses("TA") == {"broker-a": {0: A.addr, 1: A1.addr}}


@pytest.mark.conformance("103-47")
def test_a_slave_becomes_master(ns: Scene) -> None:
    assert ns.f2().but(id=0).register(ns.k2).code == 0
    assert ns.brokers() == {"broker-a": {0: A1.addr}}


@pytest.mark.conformance("103-48")
def test_another_address_takes_an_id_over(ns: Scene) -> None:
    assert ns.f1().but(addr=ELSEWHERE).register(ns.k3).code == 0
    assert ns.brokers() == {"broker-a": {0: ELSEWHERE}}


@pytest.mark.conformance("103-49", "103-50")
def test_a_lower_state_version_cannot_take_an_id_over(ns: Scene) -> None:
    newcomer = ns.f1(state_version=2, acting=False).but(addr=ELSEWHERE, state_version=1)
    answer = newcomer.register(ns.k3)
    assert (answer.code, answer.ext or {}) == (0, {})
    assert ns.brokers() == {"broker-a": {0: A.addr}}
    question = newcomer.query(ns.k3)
    assert (question.code, question.ext, question.body) == (0, {"changed": "true"}, b"")


def test_state_versions_are_compared_within_a_cluster(ns: Scene) -> None:
    newcomer = ns.f1(state_version=2, acting=False).but(addr=ELSEWHERE, state_version=1, cluster="c2")
    assert newcomer.register(ns.k3).code == 0
    assert ns.brokers() == {"broker-a": {0: ELSEWHERE}}


def test_a_refused_newcomer_gets_the_order_topics(ns: Scene) -> None:
    ns.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    newcomer = ns.f1(state_version=2).but(addr=ELSEWHERE, state_version=1)
    assert decode_kv_table(newcomer.register(ns.k3).body).table == {"TA": "broker-a:4"}


@pytest.mark.conformance("103-51")
def test_a_name_from_two_clusters_stays_in_its_first(ns: Scene) -> None:
    assert ns.f1().but(cluster="c2").register(ns.k1).code == 0
    info = ns.cluster_info()
    assert info.broker_addr_table["broker-a"].cluster == "c1"
    assert [data.cluster for data in ns.route("TA").broker_datas] == ["c1"]
    assert ns.clusters() == {"c1": {"broker-a"}, "c2": {"broker-a"}}


@pytest.mark.conformance("103-52", "103-53")
def test_filter_servers(ns: Scene) -> None:
    broker = ns.f1(filters=("127.10.0.1:3000",))
    with_filters = {A.addr: ("127.10.0.1:3000",)}
    assert ns.route("TA").filter_server_table == with_filters
    assert broker.but(filters=None).register(ns.k1).code == 0
    assert ns.route("TA").filter_server_table == with_filters
    assert broker.but(filters=()).register(ns.k1).code == 0
    assert ns.route("TA").filter_server_table == {}


@pytest.mark.conformance("103-54", "103-55")
def test_a_registration_is_answered_with_the_order_configuration(ns: Scene) -> None:
    assert A.register(ns.k1).body == b""
    ns.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    assert decode_kv_table(A.register(ns.k1).body).table == {"TA": "broker-a:4"}
    ns.k1.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": ORDER_TOPIC_CONFIG, "key": "TA"})
    assert A.register(ns.k1).body == b'{"table":{}}'


@pytest.mark.conformance("103-56")
@pytest.mark.server("options")
def test_the_order_configuration_can_be_kept_from_brokers(ns: Scene) -> None:
    ns.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    answer = A.register(ns.k1)
    assert (answer.code, answer.body) == (0, b"")


@pytest.mark.conformance("103-61")
def test_a_broker_may_name_its_own_timeout(ns: Scene) -> None:
    assert A.register(ns.k1, ext={"heartbeatTimeoutMillis": "2000"}).code == 0
    stays(lambda: ns.brokers() == {"broker-a": {0: A.addr}}, for_s=0.7)
    eventually(lambda: not ns.brokers() and not ns.has_route("TA"))


@pytest.mark.conformance("103-62", "103-63")
def test_a_zone_comes_and_goes_with_registrations(ns: Scene) -> None:
    broker = ns.f1(zone="z1")
    assert ns.cluster_info().broker_addr_table["broker-a"].zone_name == "z1"
    assert [data.zone_name for data in ns.route("TA").broker_datas] == ["z1"]
    assert broker.but(zone=None).register(ns.k1).code == 0
    assert b"zoneName" not in ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
    assert b"zoneName" not in ns.route_answer("TA").body


@pytest.mark.conformance("103-64")
def test_the_acting_flag_is_shown(ns: Scene) -> None:
    ns.f1(acting=True)
    assert b'"enableActingMaster":true' in ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
    assert b'"enableActingMaster":true' in ns.route_answer("TA").body


@pytest.mark.conformance("103-66")
def test_many_brokers_of_one_cluster(ns: Scene) -> None:
    topics = tuple(Topic(f"T{n}") for n in range(10))
    for name in range(3):
        for number in range(3):
            broker = Broker(f"broker-{name}", number, f"127.10.{name}.{number}:10911", topics=topics)
            assert broker.register(ns.connect()).code == 0
    everywhere = {f"broker-{name}": {n: f"127.10.{name}.{n}:10911" for n in range(3)} for name in range(3)}
    for topic in topics:
        assert set(ns.queues(topic.name)) == set(everywhere)
        assert ns.addresses(topic.name) == everywhere


@pytest.mark.conformance("103-67")
def test_one_address_in_two_clusters_is_two_brokers(ns: Scene) -> None:
    ns.f1()
    other = B.but(cluster="c2", addr=A.addr, counter=7)
    assert other.register(ns.k3).code == 0
    assert A.unregister(ns.k1).code == 0
    eventually(lambda: ns.brokers() == {"broker-b": {0: A.addr}})
    assert other.query(ns.k3).ext == {"changed": "false"}
