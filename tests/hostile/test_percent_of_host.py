"""A peer that makes up brokers fills its host's percentage of a namespace; brokers of other hosts still come."""

from collections.abc import Iterator

import httpx
import pytest

from rocketmq_remoting.codes import ResponseCode
from testbed.broker import Broker, Topic
from testbed.connection import Connection
from testbed.nameserver import NameServer
from tests.hostile.test_growth import http, over, refused_of

__all__ = ["http", "over"]
BROKERS, TOPICS = 12, 40
SHARE = "more than maxPercentOfHost=50 allows"


@pytest.fixture(scope="module")
def server(transport: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    options = {"remotingWorkers": "1", "maxBrokers": str(BROKERS), "maxTopics": str(TOPICS)}
    server = NameServer(tmp_path_factory.mktemp("percent"), options)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def attacker(server: NameServer) -> Iterator[Connection]:
    connection = Connection(server.port, source="127.0.0.66")
    yield connection
    connection.close()


def made_up(start: str, count: int, *, topics: int = 0) -> list[Broker]:
    """So many topics of their own each, or two that all have."""
    return [
        Broker(
            f"{start}-{number}",
            addr=f"{start}-{number}:10911",
            topics=tuple(Topic(f"{start}-{number}-{topic}") for topic in range(topics))
            or (Topic("G1"), Topic("G2")),
            timeout_ms=600_000,
        )
        for number in range(count)
    ]


def test_made_up_brokers_keep_no_others_out(
    server: NameServer, attacker: Connection, over: Connection, http: httpx.Client
) -> None:
    many = made_up("made-up", 2 * BROKERS, topics=2)
    remarks = refused_of(attacker, many)
    assert len(remarks) == 2 * BROKERS - BROKERS // 2
    assert all(SHARE in remark for remark in remarks)
    assert "more than maxPercentOfHost=50" in server.said()
    large = many[0].but(counter=2, topics=tuple(Topic(f"large-{topic}") for topic in range(TOPICS // 2 + 5)))
    assert SHARE in (large.register(attacker).remark or "")

    real = made_up("real", 3, topics=4)
    assert refused_of(over, real) == []
    assert real[0].unregister(over).code == 0
    assert real[0].register(over).code == 0
    body = {"cluster": "c", "brokerName": "by-http", "brokerAddr": "127.71.9.9:1", "brokerId": 0}
    assert http.post("/brokers", json=body).status_code == 200
    found = http.get("/limits").json()
    assert found["brokers"] == {
        "used": BROKERS // 2 + 4,
        "most": BROKERS,
        "mostOfHost": BROKERS // 2,
    }
    assert found["hosts"] == [
        {"host": "127.0.0.66", "brokers": BROKERS // 2},
        {"host": "127.0.0.1", "brokers": 4},
    ]
    for broker in many[: BROKERS // 2]:
        assert broker.register(attacker).code == 0  # they were there, and go on
        assert broker.unregister(attacker).code == 0
    for broker in real:
        assert broker.unregister(over).code == 0
    where = {"cluster": "c", "brokerAddr": "127.71.9.9:1"}
    assert http.delete("/brokers/by-http", params=where).status_code == 200


def test_a_broker_that_left_a_full_namespace_is_refused_by_the_limit(
    server: NameServer, over: Connection
) -> None:
    """Its place goes to the next registration."""
    neighbour = Connection(server.port, source="127.0.0.2")
    [left], [late] = made_up("leaves", 1), made_up("late", 1)
    others, brokers = made_up("other", BROKERS // 2), made_up("half", BROKERS // 2 - 1)
    assert refused_of(neighbour, others) == []
    assert refused_of(over, [*brokers, left]) == []
    assert left.unregister(over).code == 0
    assert late.register(over).code == 0
    answer = left.register(over)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert f"more than maxBrokers={BROKERS} allows" in (answer.remark or "")
    assert late.unregister(over).code == 0
    assert left.register(over).code == 0
    neighbour.close()
