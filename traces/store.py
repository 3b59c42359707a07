"""Spans of round trips to the store: each has the script or command as its name, and no key or value."""

from collections.abc import Sequence
from time import time_ns
from typing import Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_current_span
from opentelemetry.util.types import AttributeValue

from registry.drivers import Observe
from registry.plans import Call, ScriptCall, ScriptItem

__all__ = ["begin_call", "end_call", "observing"]

NS_IN_S: Final = 1_000_000_000
PIPELINE: Final = "PIPELINE"


def observing(tracer: Tracer, observe: Observe) -> Observe:
    """Return an observer of `registry.drivers.run` that adds a span to the one of this thread, if that is recorded."""

    def observe_too(requests: Sequence[Call | ScriptCall], seconds: float, replies: Sequence[object]) -> None:
        observe(requests, seconds, replies)
        if get_current_span().is_recording():
            ended_ns = time_ns()
            span = begin_call(tracer, requests, ended_ns - int(seconds * NS_IN_S))
            errors = [reply for reply in replies if isinstance(reply, Exception)]
            end_call(span, errors[0] if errors else None, ended_ns)

    return observe_too


def begin_call(
    tracer: Tracer, requests: Sequence[Call | ScriptCall | ScriptItem], began_ns: int | None = None
) -> Span:
    """Return a new span of requests that are sent together, a child of the current one."""
    attributes: dict[str, AttributeValue] = {"db.system.name": "redis"}
    if len(requests) == 1:
        name = _name_of(requests[0])
        key = "db.operation.name" if isinstance(requests[0], Call) else "db.stored_procedure.name"
        attributes[key] = name
    else:
        name = attributes["db.operation.name"] = PIPELINE
        attributes["db.operation.batch.size"] = len(requests)
    return tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes, start_time=began_ns)


def end_call(span: Span, reply: object, ended_ns: int | None = None) -> None:
    """End the span with its reply, or the error in its place; of an error only the type is noted."""
    if isinstance(reply, Exception):
        span.set_attribute("error.type", type(reply).__name__)
        span.set_status(Status(StatusCode.ERROR))
    span.end(ended_ns)


def _name_of(request: Call | ScriptCall | ScriptItem) -> str:
    return str(request.args[0]) if isinstance(request, Call) else request.name
