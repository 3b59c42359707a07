"""An OTLP receiver: an HTTP server that decodes what exporters send, and keeps it; and a hostile one."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

Attributes = dict[str, Any]
LONG_ANSWER: Final = 1 << 26
"""Bytes; the system's buffers have a few million."""


class Span(NamedTuple):
    """A span as it was received, with the attributes of its resource."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    kind: int
    status: int
    attributes: Attributes
    resource: Attributes
    begin_ns: int
    end_ns: int


class Receiver:
    """`url` is what OTEL_EXPORTER_OTLP_ENDPOINT names."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.spans: list[Span] = []

    def named(self, name: str) -> list[Span]:
        """Return the spans of this name."""
        return [span for span in self.spans if span.name == name]

    def below(self, parent: Span) -> list[Span]:
        """Return the children of a span."""
        return [span for span in self.spans if span.parent == parent.id]

    def take(self, body: bytes) -> None:
        """Decode an export. Raises google.protobuf's DecodeError."""
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _attributes(resource_spans.resource.attributes)
            for scope in resource_spans.scope_spans:
                self.spans += [_span(span, resource) for span in scope.spans]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Yield a running receiver."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            received.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            reply = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Receiver(server.server_port)
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield received
        finally:
            server.shutdown()


@contextmanager
def endless() -> Iterator[tuple[str, SimpleQueue[int]]]:
    """Yield the URL of a server with a long answer, and how many bytes of each its peer let it send."""
    sent = SimpleQueue[int]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            count = 0
            try:
                while count < LONG_ANSWER:
                    count += self.wfile.write(bytes(1 << 16))
            except OSError:
                pass
            sent.put(count)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", sent
        finally:
            server.shutdown()


def _attributes(pairs: Any) -> Attributes:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def _span(span: Any, resource: Attributes) -> Span:
    return Span(
        span.name,
        span.span_id,
        span.parent_span_id,
        span.trace_id,
        span.kind,
        span.status.code,
        _attributes(span.attributes),
        resource,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )
