"""The tracer of this process: begun in it, behind any fork, and ended with it."""

import logging
import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from threading import Thread
from typing import Final, Literal

from registry.options.catalogue import Options

__all__ = ["END_S", "Role", "begin", "end"]

try:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio, Sampler
    from opentelemetry.trace import Tracer
    from opentelemetry.util.types import AttributeValue

    from traces.exporting import exporters
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("opentelemetry"):
        raise
    MISSING: str | None = error.name
else:
    MISSING = None

Role = Literal["remoting", "http", "jobs"]
NAME: Final = "redis-namesrv"
END_S: Final = 1.0
"""For how long the end of a process waits until spans are exported."""
RATIOS: Final[Mapping[Role, float]] = {"remoting": 0.01, "jobs": 0.01}
"""What part of requests and jobs has spans without OTEL_TRACES_SAMPLER: there may be thousands a second."""
VALUE_MOST: Final = 256
"""Characters of an attribute without OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: peers choose names."""

log = logging.getLogger(__name__)
_providers: "list[TracerProvider]" = []


def begin(options: Options, role: Role) -> "Tracer | None":
    """Return the tracer of this process, None if there can be none: a line says why, and requests are served."""
    if MISSING is not None:
        log.error("no spans are recorded, since %s is missing; install redis-namesrv[otel]", MISSING)
        return None
    try:
        provider = _provider(options, role)
    except Exception as error:
        log.error("no spans are recorded: %s; correct the variables OTEL_…", error)
        return None
    _providers.append(provider)
    return provider.get_tracer(NAME, _version())


def end() -> None:
    """Export the spans that are left, in END_S; what is not exported by then is dropped."""
    while _providers:
        ending = Thread(target=_providers.pop().shutdown, daemon=True)
        ending.start()
        ending.join(END_S)


def _provider(options: Options, role: Role) -> "TracerProvider":
    """Raises ValueError and what exporters raise for variables that cannot be used."""
    provider = TracerProvider(
        _sampler(role),
        _resource(options, role),
        shutdown_on_exit=False,  # without a bound, and a fork of the supervisor runs no functions of atexit
        span_limits=SpanLimits(max_attribute_length=_value_most()),
    )
    for exporter in exporters():
        provider.add_span_processor(BatchSpanProcessor(exporter))
    logging.getLogger().getChild("opentelemetry").setLevel(
        logging.CRITICAL + 1
    )  # ReportingExporter says it once
    return provider


def _sampler(role: Role) -> "Sampler | None":
    """Return what samples, None for the one of the environment, by default all that a parent or nothing asks for."""
    ratio = None if os.environ.get("OTEL_TRACES_SAMPLER") else RATIOS.get(role)
    return None if ratio is None else ParentBasedTraceIdRatio(ratio)


def _value_most() -> int | None:
    given = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
    return None if any(map(os.environ.get, given)) else VALUE_MOST


def _resource(options: Options, role: Role) -> "Resource":
    """Return what is the same of all spans; OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win."""
    ours: dict[str, AttributeValue] = {
        "service.name": NAME,
        "service.namespace": options.namespace,
        "service.version": _version(),
        "mqns.role": role,
        "process.pid": os.getpid(),
        "host.name": os.uname().nodename,
    }
    return Resource.create().merge(Resource(ours)).merge(OTELResourceDetector().detect())


def _version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"
