"""Requests through gunicorn's workers and sockets, as an operator types them."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mqnamesrv.store import EmbeddedStore
from tests.api.gunicorn import ROOT, curl, http_workers
from tests.api.http import a_broker


@pytest.fixture
def address(store: EmbeddedStore) -> Iterator[str]:
    with http_workers(store.url) as address:
        yield address


@pytest.mark.needs("curl")
def test_what_an_operator_types(address: str) -> None:
    as_json = ("-H", "content-type: application/json")
    status, body = curl(*as_json, "-d", json.dumps(a_broker()), f"{address}/v1/brokers")
    assert (status, json.loads(body)["masterAddr"]) == (200, None)
    status, body = curl(f"{address}/v1/routes/TopicA")
    assert (status, json.loads(body)["queueDatas"][0]["readQueueNums"]) == (200, 8)
    status, body = curl("-X", "PUT", *as_json, "-d", '{"value":"x"}', f"{address}/v1/kv/n/a%2Fb")
    assert status == 200
    status, body = curl(f"{address}/v1/kv/n")
    assert (status, json.loads(body)["table"]) == (200, {"a/b": "x"})
    for part, name in (("a%2Fb", "a/b"), ("%2E%2E", ".."), ("=..", ".."), ("=", "")):
        url = ("--path-as-is", f"{address}/v1/kv/{part}/{part}")  # newer curls take %2E%2E for ..
        status, body = curl("-X", "PUT", *as_json, "-d", '{"value":"y"}', *url)
        assert status == 200
        status, body = curl(*url)
        assert (status, json.loads(body)) == (200, {"namespace": name, "key": name, "value": "y"})
    status, body = curl("-d", "{}", f"{address}/v1/brokers")
    assert (status, json.loads(body)["title"]) == (415, "Unsupported Media Type")
    status, body = curl(f"{address}/v1/events")
    actor = json.loads(body)["events"][0]["fields"]["actor"]
    assert actor.startswith("http:127.0.0.1:")
    assert int(actor.rpartition(":")[2])


def test_the_first_requests_may_come_together(address: str) -> None:
    def alive(_: int) -> int:
        client = http.client.HTTPConnection(address)
        try:
            client.request("GET", "/healthz")
            return client.getresponse().status
        finally:
            client.close()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(alive, range(24))) == [200] * 24


def test_a_connection_is_kept(address: str) -> None:
    client = http.client.HTTPConnection(address)
    ports = set()
    for _ in range(3):
        client.request(
            "PUT", "/v1/kv/n/k", json.dumps({"value": str(time.time())}), {"content-type": "application/json"}
        )
        response = client.getresponse()
        assert response.status == 200
        response.read()
        ports.add(client.sock.getsockname()[1])
    client.close()
    assert len(ports) == 1


def test_importing_it_loads_no_web_framework() -> None:
    """Remoting workers load the same module and must not pay for HTTP."""
    script = (
        "import sys, wsgi; print(sorted({'flask', 'apiflask', 'pydantic', 'redis'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-E", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
