"""Tables that are damaged while the service runs are right again within a minute, and so are workers' caches."""

from collections.abc import Callable

import httpx
import pytest

from registry.drivers import run
from registry.registration.register import register
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from tests.mqns.cli.conftest import http_side
from tests.registry.brokers import origin, registration

TOPICS = tuple(f"T{number}" for number in range(20))
WITHIN_S = 60.0


@pytest.mark.timeout(150)
def test_deleted_keys_are_back_within_a_minute(launch: Callable[..., NameServer]) -> None:
    server = launch(httpPort="0")
    keys = server.keys
    connection = Connection(server.port)

    def route(topic: str) -> int:
        return connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}).code

    with server.store() as store:
        for name in ("b1", "b2"):
            run(register(keys, registration(name, topics=TOPICS, timeout_ms=600_000), origin()), store)
        eventually(lambda: store.hget(keys.repair, "walked_ms"), WITHIN_S)
        store.delete(keys.route("T7"), keys.topics, keys.brokers)
        store.hdel(keys.topics_of("b2"), *TOPICS[8:])
        assert route("T7") == ResponseCode.TOPIC_NOT_EXIST
        eventually(lambda: route("T7") == 0, WITHIN_S)
        eventually(lambda: store.scard(keys.topics) == len(TOPICS), WITHIN_S)
        eventually(lambda: store.hlen(keys.topics_of("b2")) == len(TOPICS), WITHIN_S)
        assert store.smembers(keys.brokers) == {"b1", "b2"}
        eventually(lambda: store.hget(keys.repair, "repaired_ms"), WITHIN_S)
    assert httpx.get(f"{http_side(server)}/v1/repairs").json()["repairedRows"]["topics"] > 0
