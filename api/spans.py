"""Spans of requests over HTTP; round trips to the store are their children (`traces.store`)."""

from typing import Final

from flask import Flask, Response, g, request
from opentelemetry.context import attach, detach
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from api.probes import PROBES

__all__ = ["trace_requests"]

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def trace_requests(app: Flask, tracer: Tracer) -> None:
    """Have each request of an application be a span, a child of the one that its `traceparent` names."""

    @app.before_request
    def begin() -> None:
        if request.path in PROBES:
            return
        parent = extract(request.headers)
        method = request.method if request.method in METHODS else "_OTHER"
        span = tracer.start_span(method, parent, SpanKind.SERVER, {"http.request.method": method})
        if span.is_recording():
            span.set_attributes({"url.path": request.path, "client.address": request.remote_addr or ""})
        g.span, g.span_token = span, attach(set_span_in_context(span, parent))

    @app.after_request
    def describe(response: Response) -> Response:
        span = g.get("span")
        if span is not None:
            if request.url_rule is not None:
                span.update_name(f"{request.method} {request.url_rule.rule}")
                span.set_attribute("http.route", request.url_rule.rule)
            span.set_attribute("http.response.status_code", response.status_code)
            if response.status_code >= 500:
                span.set_status(Status(StatusCode.ERROR))
        return response

    @app.teardown_request
    def end(error: BaseException | None) -> None:
        span = g.pop("span", None)
        if span is not None:
            detach(g.pop("span_token"))
            span.end()
