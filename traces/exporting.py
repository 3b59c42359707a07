"""Where spans go: the exporters that the standard environment names, and what is said while one cannot export."""

import logging
import os
from collections.abc import Sequence
from importlib.metadata import entry_points
from threading import Timer
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["ReportingExporter", "exporters"]

GROUP: Final = "opentelemetry_traces_exporter"
HTTP_PROTOBUF, GRPC = "http/protobuf", "grpc"
OTLP: Final = {HTTP_PROTOBUF: "otlp_proto_http", GRPC: "otlp_proto_grpc"}
"""Names of entry points, by OTEL_EXPORTER_OTLP_PROTOCOL."""
CREDENTIAL_PROVIDERS: Final = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
)
"""Variables by which another package has the session."""
REPEATED_EVERY_S: Final = 600.0
LATE_S: Final = 30.0
"""An export that takes longer hangs: each wait of it ends after OTEL_EXPORTER_OTLP_TIMEOUT, 10 s by default, but an
answer may come byte by byte."""

log = logging.getLogger(__name__)


def exporters() -> list[SpanExporter]:
    """Return those of OTEL_TRACES_EXPORTER, by default OTLP over HTTP. Raises ValueError for one that is not there."""
    names = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    named = [name.strip() for name in names.split(",")]
    return [ReportingExporter(_exporter(name)) for name in named if name not in ("", "none")]


def _exporter(name: str) -> SpanExporter:
    if name == "otlp":
        protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get(
            "OTEL_EXPORTER_OTLP_PROTOCOL", HTTP_PROTOBUF
        )
        name = OTLP.get(protocol, protocol)
    bounded = name == OTLP[HTTP_PROTOBUF] and not any(map(os.environ.get, CREDENTIAL_PROVIDERS))
    for entry_point in entry_points(group=GROUP, name=name):
        exporter: SpanExporter = entry_point.load()(**_bounds() if bounded else {})
        return exporter
    raise ValueError(f"no exporter {name} is installed")


def _bounds() -> dict[str, object]:
    """Return the session of the exporter over HTTP, whose library it needs."""
    from traces.bounded_session import BoundedSession

    return {"session": BoundedSession()}


class ReportingExporter(SpanExporter):
    """Hands spans to another exporter, and logs once that it cannot export or hangs: the library would log each."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failed = False
        self._log = RateLimitedLog(log, REPEATED_EVERY_S)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Called by the thread of the batch processor."""
        late = Timer(LATE_S, self._report_late)
        late.daemon = True
        late.start()
        try:
            result = self._exporter.export(spans)
        finally:
            late.cancel()
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failed:
            self._log.warning(
                "spans cannot be exported and are dropped; see whether the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT "
                "takes them (requests are answered all the same)"
            )
        self._failed = failed
        return result

    def _report_late(self) -> None:
        self._log.warning(
            "an export of spans has taken %g s and goes on, others are dropped meanwhile; see why the endpoint of "
            "OTEL_EXPORTER_OTLP_ENDPOINT does not answer (requests are answered all the same)",
            LATE_S,
        )

    def shutdown(self) -> None:
        """Called at the end of the process."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return whether all is exported."""
        return self._exporter.force_flush(timeout_millis)
