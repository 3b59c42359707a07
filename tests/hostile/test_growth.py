"""Peers that register and store without end: each refusal names its limit, and registered brokers stay."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import Broker, Topic
from testbed.connection import V5_3_3, Connection
from testbed.nameserver import NameServer
from tests.hostile.watch import resident

NAMES, CLUSTERS, HEARTBEATS = 700, 1000, 200
NAMES_MOST, CLUSTERS_MOST = 5, 4
KV = {"maxKvNamespaces": "3", "maxKvKeys": "4", "maxKvNamespaceBytes": str(1 << 20)}
VALUE = (1 << 18) - 2
"""Bytes: four with their keys are a namespace at its limit."""
MORE = "more than {}={} allows"
ORDER = "ORDER_TOPIC_CONFIG"
GROWN_BYTES = 48 << 20
"""Of a worker while 200 brokers send heartbeats; it was 334 MB."""
OLD = Broker(
    "was-here",
    addr="127.70.0.1:10911",
    cluster="grown",
    topics=(Topic("G1"), Topic("G2")),
    timeout_ms=600_000,
)


@pytest.fixture(scope="module")
def grown_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = EmbeddedStore(tmp_path_factory.mktemp("grown-store"), keep=False)
    store.start()
    yield store
    store.stop()


@pytest.fixture(scope="module")
def server(
    transport: None, grown_store: EmbeddedStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NameServer]:
    options = {
        "remotingWorkers": "1",
        "maxNamesOfMember": str(NAMES_MOST),
        "maxClustersOfBroker": str(CLUSTERS_MOST),
        "maxTopicsOfBroker": "3",
        "returnOrderTopicConfigToBroker": "true",
        **KV,
    }
    server = NameServer(tmp_path_factory.mktemp("grown"), options, url=grown_store.url)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def over(server: NameServer) -> Iterator[Connection]:
    connection = Connection(server.port)
    yield connection
    connection.close()


@pytest.fixture
def http(server: NameServer) -> Iterator[httpx.Client]:
    match = re.search(r"^ready .* http=\S+:(\d+) ", server.said(), re.M)
    assert match
    with httpx.Client(base_url=f"http://127.0.0.1:{match[1]}/v1") as client:
        yield client


def refused_of(over: Connection, brokers: list[Broker]) -> list[str]:
    """Return the remarks of those that are refused, each with code 1."""
    replies = [broker.register(over) for broker in brokers]
    assert {reply.code for reply in replies} <= {0, ResponseCode.SYSTEM_ERROR}
    return [reply.remark or "" for reply in replies if reply.code]


def assert_goes_on(over: Connection, broker: Broker) -> None:
    """Assert that it may be sent again, and change."""
    assert broker.register(over).code == 0
    assert broker.but(counter=2, topics=(*broker.topics, Topic("G3"))).register(over).code == 0
    assert broker.but(counter=3).register(over).code == 0


def test_names_of_one_address(server: NameServer, over: Connection) -> None:
    with server.store() as store:
        assert OLD.register(over).code == 0
        before = store.xlen(server.keys.events)
        more = [OLD.but(name=f"name-{number:03}") for number in range(NAMES)]
        remarks = refused_of(over, more)
        assert len(remarks) == NAMES - NAMES_MOST + 1
        assert all(MORE.format("maxNamesOfMember", NAMES_MOST) in remark for remark in remarks)
        kinds = [fields["kind"] for _, fields in store.xrange(server.keys.events)][before:]
        assert kinds.count("conflict_seen") == NAMES_MOST - 1
        assert_goes_on(over, OLD)
        for broker in more[: NAMES_MOST - 1]:
            assert broker.unregister(over).code == 0
        assert OLD.but(name="name-701").register(over).code == 0
        assert OLD.but(name="name-701").unregister(over).code == 0
        assert OLD.unregister(over).code == 0
        assert store.smembers(server.keys.brokers) == set()
    assert "maxNamesOfMember" in server.said()


def test_clusters_of_one_name(server: NameServer, over: Connection) -> None:
    assert OLD.register(over).code == 0
    others = [
        OLD.but(id=number, addr=f"127.70.1.1:{number}", cluster=f"other-{number}")
        for number in range(1, CLUSTERS)
    ]
    remarks = refused_of(over, others)
    assert len(remarks) == CLUSTERS - CLUSTERS_MOST
    assert all(MORE.format("maxClustersOfBroker", CLUSTERS_MOST) in remark for remark in remarks)
    route = over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "G1"}, version=V5_3_3)
    assert OLD.addr in route.body.decode()
    assert_goes_on(over, OLD)
    for broker in (OLD, *others[: CLUSTERS_MOST - 1]):
        assert broker.unregister(over).code == 0


def put(over: Connection, namespace: str, key: str, value: str) -> str | None:
    """Return the remark of a refusal."""
    fields = {"namespace": namespace, "key": key, "value": value}
    reply = over.ask(RequestCode.PUT_KV_CONFIG, fields)
    assert reply.code in (0, ResponseCode.SYSTEM_ERROR)
    return reply.remark if reply.code else None


@pytest.fixture
def full(over: Connection) -> None:
    """Have KV at its limits, ORDER_TOPIC_CONFIG with as many bytes as may be."""
    for namespace in (ORDER, "n1", "n2"):
        for key in range(4):
            assert put(over, namespace, f"k{key}", "v" * VALUE) is None


@pytest.mark.usefixtures("full")
def test_kv_is_limited_in_all(server: NameServer, over: Connection, http: httpx.Client) -> None:
    with server.store() as store:
        before = store.xlen(server.keys.events)
        with pytest.raises(ConnectionError):  # no header is so long
            put(Connection(server.port), ORDER, "k0", "v" * (4 << 20))
        assert http.put(f"/kv/{ORDER}/k0", json={"value": "v" * (4 << 20)}).status_code in (409, 413)
        for namespace, key, value, option in (
            ("n3", "k0", "v", "maxKvNamespaces"),
            ("n1", "k4", "v", "maxKvKeys"),
            (ORDER, "k0", "v" * ((1 << 18) + 1), "maxKvValueBytes"),
            (ORDER, "k0", "v" * (1 << 18), "maxKvNamespaceBytes"),
        ):
            assert f"more than {option}=" in (put(over, namespace, key, value) or "")
            answer = http.put(f"/kv/{namespace}/{key}", json={"value": value})
            assert (answer.status_code, "limit-reached" in answer.json()["type"]) == (409, True)
            assert option in answer.json()["detail"]
        assert f"PUT '/v1/kv/{ORDER}/k0' of 127.0.0.1 was refused" in server.said()
        for option in ("maxKvNamespaces", "maxKvKeys", "maxKvValueBytes", "maxKvNamespaceBytes"):
            refusals = [line for line in server.said().splitlines() if f"more than {option}=" in line]
            assert any("request 100 of" in line for line in refusals)  # none hides another
            assert any("PUT '/v1/kv/" in line for line in refusals)
        assert store.xlen(server.keys.events) == before
        assert put(over, ORDER, "k0", "less") is None
        assert put(over, ORDER, "k0", "v" * VALUE) is None


@pytest.mark.usefixtures("full")
def test_heartbeats_with_as_many_order_topics_as_may_be(server: NameServer, over: Connection) -> None:
    """Each reply has a megabyte of them."""
    worker = server.worker_of(over)
    brokers = [OLD.but(name=f"b{number}", addr=f"127.70.2.{number}:1") for number in range(1, HEARTBEATS + 1)]
    before = resident(worker)
    for broker in brokers:
        reply = broker.register(over, version=V5_3_3)
        assert (reply.code, len(reply.body) > 1_000_000) == (0, True)
    for broker in brokers[:20]:
        assert broker.register(over, version=V5_3_3).code == 0
    assert resident(worker) - before < GROWN_BYTES
    for broker in brokers:
        assert broker.unregister(over).code == 0


def test_over_http_a_limit_is_a_conflict_that_names_the_option(over: Connection, http: httpx.Client) -> None:
    assert OLD.register(over).code == 0
    topics = [{"topicName": f"G{number}"} for number in range(4)]
    broker = {
        "cluster": OLD.cluster, "brokerName": OLD.name, "brokerAddr": OLD.addr, "brokerId": 0, "topics": topics,
    }  # fmt: skip
    answer = http.post("/brokers", json=broker)
    assert answer.status_code == 409, answer.text
    assert "limit-reached" in answer.json()["type"]
    assert MORE.format("maxTopicsOfBroker", 3) in json.dumps(answer.json())
    assert http.post("/brokers", json=broker | {"topics": topics[:3]}).status_code < 300
    assert OLD.unregister(over).code == 0
