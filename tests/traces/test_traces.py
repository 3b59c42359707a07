"""Spans of a running name server, as an OTLP receiver gets them."""

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from tests.traces.receiver import Receiver, receiver

SERVER, CLIENT = 2, 3
"""Kinds of spans in OTLP."""
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
AT_ONCE: Final = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
ALL: Final = AT_ONCE | {"OTEL_TRACES_SAMPLER": "parentbased_always_on"}


class TracedNameServer(NameServer):
    """`mqnamesrv` with traces, and these variables beside its options."""

    def __init__(self, folder: Path, url: str, variables: dict[str, str]) -> None:
        options = {"traces": "true", "remotingWorkers": "1", "httpWorkers": "1"}
        super().__init__(folder, options, url=url, namespace="traced")
        self._variables = variables

    def _environment(self) -> dict[str, str]:
        return super()._environment() | self._variables

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> int:
        """Return the status of a request over HTTP."""
        match = re.search(r"ready .*http=([0-9.:]+)", self.said())
        assert match
        client = http.client.HTTPConnection(match[1])
        try:
            text = None if body is None else json.dumps(body)
            client.request(method, path, text, {"content-type": "application/json"} | headers)
            return client.getresponse().status
        finally:
            client.close()


@pytest.fixture
def received() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def test_a_write_over_http_and_a_registration(
    tmp_path: Path, store: EmbeddedStore, received: Receiver
) -> None:
    server = TracedNameServer(tmp_path, store.url, ALL | {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url})
    server.start()
    try:
        traceparent = f"00-{TRACE}-{PARENT}-01"
        assert (
            server.ask("PUT", "/v1/kv/n/secret-key", {"value": "secret-value"}, traceparent=traceparent)
            == 200
        )
        assert server.ask("GET", "/v1/routes/none") == 404
        assert server.ask("GET", "/healthz") == 200
        with closing(Connection(server.port)) as client:
            assert Broker().register(client).code == 0
            for _ in range(3):  # the first is read from the store, the second from a cache, then by its bytes
                assert client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}).code == 0
            assert client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "none"}).code == 17
        eventually(lambda: len(received.named("GET_ROUTEINFO_BY_TOPIC")) == 2)
    finally:
        server.stop()
    _is_the_write(received)
    _is_the_registration(received)
    _are_the_lookups(received)
    _are_jobs(received)
    assert {span.resource["mqns.role"] for span in received.spans} == {"http", "remoting", "jobs"}
    assert not received.named("GET /healthz")
    assert b"secret-value" not in repr(received.spans).encode()


def _is_the_write(received: Receiver) -> None:
    (write,) = received.named("PUT /v1/kv/<namespace>/<path:key>")
    assert (write.kind, write.status, write.trace.hex(), write.parent.hex()) == (SERVER, 0, TRACE, PARENT)
    assert write.attributes | {"client.address": ""} == {
        "http.request.method": "PUT",
        "url.path": "/v1/kv/n/secret-key",
        "client.address": "",
        "http.route": write.name.removeprefix("PUT "),
        "http.response.status_code": 200,
    }
    resource = write.resource
    assert (resource["service.name"], resource["service.namespace"]) == ("redis-namesrv", "traced")
    assert resource["service.version"]
    children = received.below(write)
    assert "set_kv" in {span.name for span in children}
    for span in children:
        assert (span.kind, span.attributes["db.system.name"]) == (CLIENT, "redis")
        assert write.begin_ns - 1_000_000 <= span.begin_ns <= span.end_ns <= write.end_ns


def _is_the_registration(received: Receiver) -> None:
    (registration,) = received.named("REGISTER_BROKER")
    assert (registration.kind, registration.status, registration.parent) == (SERVER, 0, b"")
    assert registration.attributes["mqns.broker"] == "broker-a"
    assert registration.attributes["client.address"].startswith("127.0.0.1:")
    children = received.below(registration)
    assert {"register"} <= {span.name for span in children}
    assert {span.trace for span in children} == {registration.trace}
    for span in children:
        assert registration.begin_ns <= span.begin_ns <= span.end_ns <= registration.end_ns


def _are_the_lookups(received: Receiver) -> None:
    for topic, code in (("TA", "0"), ("none", "17")):
        (lookup,) = [
            span
            for span in received.named("GET_ROUTEINFO_BY_TOPIC")
            if span.attributes["messaging.destination.name"] == topic
        ]
        assert (lookup.status, lookup.attributes["rpc.response.status_code"]) == (0, code)
        assert [span.name for span in received.below(lookup)] == ["read_routes"]


def _are_jobs(received: Receiver) -> None:
    job = received.named("job expire_brokers")[0]
    assert (job.parent, job.status, job.resource["mqns.role"]) == (b"", 0, "jobs")
    assert "expire_members" in {span.name for span in received.below(job)}


def test_what_is_left_is_exported_at_the_end(
    tmp_path: Path, store: EmbeddedStore, received: Receiver
) -> None:
    variables = ALL | {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_EXPORTER_OTLP_ENDPOINT": received.url}
    server = TracedNameServer(tmp_path, store.url, variables)
    server.start()
    try:
        assert server.ask("GET", "/v1/brokers") == 200
        with closing(Connection(server.port)) as client:
            assert Broker().register(client).code == 0
        assert received.spans == []
    finally:
        server.stop()
    assert received.named("GET /v1/brokers")
    assert received.named("REGISTER_BROKER")


def test_an_endpoint_that_is_away_costs_one_line(tmp_path: Path, store: EmbeddedStore) -> None:
    with receiver() as gone:
        pass
    variables = ALL | {"OTEL_EXPORTER_OTLP_ENDPOINT": gone.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    server = TracedNameServer(tmp_path, store.url, variables)
    server.start()
    dropped = "traces.exporting spans cannot be exported and are dropped"
    try:
        for _ in range(20):
            assert server.ask("GET", "/v1/brokers") == 200
        eventually(lambda: dropped in server.said())
        for _ in range(20):
            assert server.ask("GET", "/v1/brokers") == 200
    finally:
        server.stop()
    said = server.said()
    logged_by = re.findall(rf"\[(\d+)\] \[traced\] \[WARNING\] {dropped}", said)
    assert len(logged_by) == len(set(logged_by)), "more than a line of a process"
    assert "opentelemetry" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "no exporter jaeger is installed"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "no exporter otlp_proto_grpc is installed"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "max_queue_size must be a positive integer"),
    ],
)
def test_wrong_variables_cost_the_spans_alone(
    tmp_path: Path, store: EmbeddedStore, variables: dict[str, str], text: str
) -> None:
    server = TracedNameServer(tmp_path, store.url, variables)
    server.start()
    try:
        assert server.ask("GET", "/v1/brokers") == 200
        with closing(Connection(server.port)) as client:
            assert Broker().register(client).code == 0
    finally:
        server.stop()
    assert server.said().count(f"traces.process no spans are recorded: {text}") == 3  # remoting, HTTP, jobs
