"""ClusterTest mode (docs/conformance.md, CT): the product cluster is another server of ours."""

from collections.abc import Callable, Iterator

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.broker import TA, TB, B, Topic
from testbed.nameserver import NameServer
from testbed.scene import ORDER_TOPIC_CONFIG, Scene

ONLY_THERE = B.but(topics=(Topic("TP", queues=3), TB))


@pytest.fixture(scope="module")
def clustertest(
    new_server: Callable[..., NameServer], shared_server: Callable[[str], NameServer]
) -> Iterator[NameServer]:
    product = f"127.0.0.1:{shared_server('default').port}"
    server = new_server("cluster-test", {"clusterTest": "true", "namesrvProductAddr": product})
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def local(clustertest: NameServer) -> Iterator[Scene]:
    """The server in ClusterTest mode; `ns` is its product cluster."""
    scene = Scene(clustertest)
    yield scene
    scene.clear()


@pytest.mark.conformance("CT-01")
def test_a_route_of_its_own(local: Scene, ns: Scene) -> None:
    assert B.but(topics=(TA, TB)).register(ns.k3).code == 0
    local.f1()
    assert set(local.addresses("TA")) == {"broker-a"}
    assert local.route("TA").order_topic_conf is None
    local.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    assert local.route("TA").order_topic_conf == "broker-a:4"


@pytest.mark.conformance("CT-02")
def test_a_route_of_the_product_cluster(local: Scene, ns: Scene) -> None:
    local.f1()
    assert ONLY_THERE.register(ns.k3).code == 0
    assert local.addresses("TP") == {"broker-b": {0: B.addr}}
    assert local.queues("TP")["broker-b"].read_queue_nums == 3


@pytest.mark.conformance("CT-03")
def test_a_route_of_neither(local: Scene, ns: Scene) -> None:
    local.f1()
    answer = local.route_answer("TP")
    assert answer.code == 17
    assert (answer.remark or "").startswith("No topic route info in name server for the topic: TP\nSee ")
    assert not ns.has_route("TP")


@pytest.mark.conformance("CT-04")
def test_other_requests_are_answered_as_usual(local: Scene, ns: Scene) -> None:
    local.f1()
    assert ONLY_THERE.register(ns.k3).code == 0
    assert local.topics() == {"TA", "TB"}
    assert set(local.brokers()) == {"broker-a"}
    assert local.ask(RequestCode.GET_NAMESRV_CONFIG).code == 0
