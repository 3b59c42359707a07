"""Spans of one process, in its memory."""

import asyncio
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any
from unittest.mock import ANY

import fakeredis
import pytest
import redis.asyncio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from mqnamesrv.store import EmbeddedStore
from registry.drivers import run
from registry.options.catalogue import Options
from registry.plans import Batch, Pause, Plan, call
from registry.store.connect import connect_async
from testbed.eventually import PATIENCE_S, eventually
from tests.traces.receiver import LONG_ANSWER, endless
from tests.worker.scene import Broker, Scene, asynchronous
from traces import exporting, process
from traces.exporting import ReportingExporter
from traces.store import observing
from worker.traced_service import TracedDriver, TracedService


@pytest.fixture
def memory() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(memory: InMemorySpanExporter) -> Tracer:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider.get_tracer("test")


def _tree(memory: InMemorySpanExporter) -> dict[str, list[str]]:
    """Return the names of the children of each root, in the order of their ends."""
    spans = memory.get_finished_spans()
    roots = {span.context.span_id: span.name for span in spans if span.parent is None}
    tree: dict[str, list[str]] = {name: [] for name in roots.values()}
    for span in spans:
        if span.parent is not None:
            tree[roots[span.parent.span_id]].append(span.name)
    return tree


def test_a_round_trip_is_a_child_with_names_alone(memory: InMemorySpanExporter, tracer: Tracer) -> None:
    store: Any = fakeredis.FakeRedis(decode_responses=True)
    observed: list[object] = []
    observe = observing(tracer, lambda requests, *_: observed.append(requests))

    def plan() -> Plan[None]:
        yield call("SET", "secret-key", "secret-value")
        yield Batch((call("GET", "secret-key"), call("TYPE", "secret-key")))

    run(plan(), store, observe)
    assert memory.get_finished_spans() == ()
    with tracer.start_as_current_span("request"):
        run(plan(), store, observe)
        with pytest.raises(redis.ResponseError):
            run(iter_call("HGET", "secret-key", "f"), store, observe)
    assert _tree(memory) == {"request": ["SET", "PIPELINE", "HGET"]}
    assert len(observed) == 5
    first, batch, failed, _ = memory.get_finished_spans()
    assert dict(first.attributes or {}) == {"db.system.name": "redis", "db.operation.name": "SET"}
    assert (batch.attributes or {})["db.operation.batch.size"] == 2
    assert ((failed.attributes or {})["error.type"], failed.status.description) == ("ResponseError", None)
    assert "secret" not in "".join(span.to_json() for span in memory.get_finished_spans())


def iter_call(*args: str) -> Plan[Any]:
    """Return a plan of one command."""
    return (yield call(*args))


@asynchronous
async def test_what_is_sent_together_is_one_span(
    store: EmbeddedStore, memory: InMemorySpanExporter, tracer: Tracer
) -> None:
    driver = TracedDriver(connect_async(store.url), lambda *_: None, tracer)

    def plan() -> Plan[Any]:
        yield Batch((call("SET", "key", "value"), call("TYPE", "key")))
        yield Pause(0.001)
        return (yield call("GET", "key"))

    try:
        with tracer.start_as_current_span("request"):
            assert await driver.run(plan()) == "value"
        assert await driver.run(plan()) == "value"
    finally:
        await driver.close()
    assert _tree(memory) == {"request": ["PIPELINE", "GET"]}


@asynchronous
async def test_nothing_of_one_request_is_a_child_of_another(
    store: EmbeddedStore, memory: InMemorySpanExporter, tracer: Tracer
) -> None:
    """Requests of one tick share a pipeline; what each asks of the store afterwards is still its own."""
    service = TracedService(Options(redis_url=store.url), "w1", tracer)
    await service.start()
    try:
        scene = Scene(service)
        brokers = [Broker(f"broker-{number}", f"127.0.0.{number}:10911") for number in range(1, 9)]
        await asyncio.gather(*(scene.register(broker, peer=scene.connect()) for broker in brokers))
        assert await scene.addresses("TA") == {broker.ext["brokerName"]: ANY for broker in brokers}
        assert await scene.route("TA", peer=scene.connect()) != 17  # a cache answers
        assert (await scene.ask(99999)).code == 3
    finally:
        await service.stop()
    spans = memory.get_finished_spans()
    registrations = [span for span in spans if span.name == "REGISTER_BROKER"]
    children = [[span.name for span in spans if span.parent == root.context] for root in registrations]
    assert len(children) == len(brokers)
    assert children == [children[0]] * len(brokers)
    assert children[0].count("register") == 2, children[0]
    assert [span.name for span in spans if span.parent is None and span not in registrations] == [
        "GET_ROUTEINFO_BY_TOPIC",
        "OTHER",
    ]


class _Exporter(SpanExporter):
    """Returns these results, each once `released` is set."""

    def __init__(self, *results: SpanExportResult) -> None:
        self._results = list(results)
        self.released, self.begun = Event(), Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.begun.set()
        assert self.released.wait(PATIENCE_S)
        return self._results.pop(0)

    def shutdown(self) -> None:
        """Do nothing."""


def test_an_exporter_that_hangs_does_not_keep_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it take memory: beyond the queue spans are dropped."""
    hanging = _Exporter(*[SpanExportResult.SUCCESS] * 10)
    monkeypatch.setattr(process, "exporters", lambda: [hanging])
    monkeypatch.setattr(process, "END_S", 0.1)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    tracer = process.begin(Options(), "http")
    assert tracer is not None
    for _ in range(1000):
        tracer.start_span("span", attributes={"name": "x" * 1000}).end()
    assert hanging.begun.wait(PATIENCE_S)
    began_s = time.monotonic()
    process.end()
    assert time.monotonic() - began_s < PATIENCE_S / 2
    hanging.released.set()


def test_a_failure_is_logged_once_until_it_works_again(caplog: pytest.LogCaptureFixture) -> None:
    failed, succeeded = SpanExportResult.FAILURE, SpanExportResult.SUCCESS
    exporter = _Exporter(failed, failed, succeeded, failed)
    exporter.released.set()
    reporting = ReportingExporter(exporter)
    assert [reporting.export(()) for _ in range(4)] == [failed, failed, succeeded, failed]
    assert [record.message[:28] for record in caplog.records] == ["spans cannot be exported and"]


def test_an_export_that_hangs_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exporting, "LATE_S", 0.01)
    hanging = _Exporter(SpanExportResult.SUCCESS)
    export = Thread(target=ReportingExporter(hanging).export, args=((),))
    export.start()
    eventually(lambda: "an export of spans has taken 0.01 s and goes on" in caplog.text)
    hanging.released.set()
    export.join()


def test_a_long_answer_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with endless() as (url, sent):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        (exporter,) = exporting.exporters()
        assert exporter.export(()) is SpanExportResult.SUCCESS
        exporter.shutdown()
        assert sent.get(timeout=PATIENCE_S) < LONG_ANSWER


def test_long_names_are_cut(monkeypatch: pytest.MonkeyPatch, memory: InMemorySpanExporter) -> None:
    monkeypatch.setattr(process, "exporters", lambda: [memory])
    tracer = process.begin(Options(namespace="n"), "http")
    assert tracer is not None
    tracer.start_span("span", attributes={"topic": "x" * 100_000}).end()
    process.end()
    (span,) = memory.get_finished_spans()
    assert len(str((span.attributes or {})["topic"])) == process.VALUE_MOST
    assert (span.resource.attributes["service.namespace"], span.resource.attributes["mqns.role"]) == (
        "n",
        "http",
    )


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch, memory: InMemorySpanExporter) -> None:
    monkeypatch.setattr(process, "exporters", lambda: [memory])
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=other,mqns.role=mine")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "named")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    tracer = process.begin(Options(), "remoting")
    assert tracer is not None
    tracer.start_span("span").end()
    process.end()
    (span,) = memory.get_finished_spans()
    names = ("service.name", "service.namespace", "mqns.role")
    assert [span.resource.attributes[name] for name in names] == ["named", "other", "mine"]


@pytest.mark.parametrize(("role", "recorded"), [("http", 2000), ("remoting", 20), ("jobs", 20)])
def test_few_requests_over_remoting_are_sampled(
    monkeypatch: pytest.MonkeyPatch, memory: InMemorySpanExporter, role: process.Role, recorded: int
) -> None:
    monkeypatch.setattr(process, "exporters", lambda: [memory])
    tracer = process.begin(Options(), role)
    assert tracer is not None
    began = [tracer.start_span("span").is_recording() for _ in range(2000)]
    process.end()
    assert recorded / 4 < sum(began) < 4 * recorded
