"""A service whose requests are spans, with the round trips to the store as their children.

A request that a cache answers is none. A round trip that several requests share is a child of the one that began it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import redis.asyncio
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from registry.drivers import AsyncDriver, Observe, Sink
from registry.options.catalogue import Options
from registry.plans import Acquire, Batch, Pause, Request
from registry.registration.request import RegisterContext
from registry.registration.straight import Change, Split
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from traces.store import begin_call, end_call
from worker.answering import Answering
from worker.assembly import Assembly
from worker.counters import Counters
from worker.peer import Peer
from worker.reply import Reply
from worker.service import Service

__all__ = ["TracedDriver", "TracedService"]

NOTHING: Final = Context()
"""The context of no span."""
FAILED: Final = frozenset((ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY))
NAMES: Final = {int(code): code.name for code in RequestCode}
FIELDS: Final = {
    "topic": "messaging.destination.name",
    "brokerName": "mqns.broker",
    "clusterName": "mqns.cluster",
}
"""Fields of requests, and the attributes that have them."""


class TracedService(Service):
    """`worker.service.Service` with a tracer."""

    def __init__(self, options: Options, worker_id: str, tracer: Tracer) -> None:
        super().__init__(options, worker_id, partial(_TracedAssembly, tracer=tracer))

    def handle(self, command: Command, peer: Peer, frame: bytes | None = None) -> None:
        """Answer one request, within a context of its own."""
        token = attach(NOTHING)
        try:
            super().handle(command, peer, frame)
        finally:
            detach(token)


class _TracedAssembly(Assembly):
    """`worker.assembly.Assembly` with a tracer."""

    def __init__(self, options: Options, worker_id: str, tracer: Tracer) -> None:
        self._tracer = tracer
        super().__init__(options, worker_id)

    def _change_of(self, kind: RegisterContext, body: bytes, split: Split, crc: int) -> Change | None:
        """Return None: each change is to be a span."""
        return None

    def make_driver(self, store: redis.asyncio.Redis) -> AsyncDriver:
        """Return what runs plans."""
        return TracedDriver(store, self.commands, self._tracer)

    def make_answering(self) -> Answering:
        """Return what sends replies."""
        return _TracedAnswering(self.counters, self.numbers, self.options, self._tracer)


class _TracedAnswering(Answering):
    """Begins the span of a request that waits for its reply, and ends it with that."""

    def __init__(self, counters: Counters, numbers: Iterator[int], options: Options, tracer: Tracer) -> None:
        super().__init__(counters, numbers, options)
        self._tracer = tracer
        self._spans: dict[int, Span] = {}  # by the identity of the command

    def begin(self, command: Command) -> None:
        """Begin the span, which is the current one until `TracedService.handle` returns."""
        super().begin(command)
        name = NAMES.get(command.code, "OTHER")
        span = self._tracer.start_span(name, NOTHING, SpanKind.SERVER, {"rpc.system.name": "rocketmq"})
        if span.is_recording():
            span.set_attributes({"rpc.method": name, "mqns.request.code": command.code})
            for field, key in FIELDS.items():
                if (text := command.get(field)) is not None:
                    span.set_attribute(key, text)
            self._spans[id(command)] = span
            attach(set_span_in_context(span, NOTHING))  # `handle` detaches what it attached, and this with it

    def end(self, reply: Reply, command: Command, peer: Peer) -> None:
        """Answer the request and end its span."""
        super().end(reply, command, peer)
        span = self._spans.pop(id(command), None)
        if span is not None:
            span.set_attributes(
                {"client.address": peer.address, "rpc.response.status_code": str(int(reply.code))}
            )
            if reply.code in FAILED:
                span.set_status(Status(StatusCode.ERROR))
            span.end()


class TracedDriver(AsyncDriver):
    """Adds a span for what the request of the current context asks of the store."""

    def __init__(self, store: redis.asyncio.Redis, observe: Observe, tracer: Tracer) -> None:
        super().__init__(store, observe)
        self._tracer = tracer

    def ask(self, request: Request, sink: Sink) -> None:
        """Have a request performed; `sink` gets its reply in the context of now."""
        if not get_current_span().is_recording():
            super().ask(request, sink)
            return
        resumed = partial(_in_context, get_current(), sink)
        if not isinstance(request, Pause | Acquire):
            requests = request.requests if isinstance(request, Batch) else (request,)
            resumed = partial(_received, begin_call(self._tracer, requests), resumed)
        token = attach(NOTHING)  # of the parts of a batch, and of the pipeline that other requests share
        try:
            super().ask(request, resumed)
        finally:
            detach(token)


def _received(span: Span, sink: Callable[[object], None], reply: object) -> None:
    end_call(span, reply)
    sink(reply)


def _in_context(context: Context, sink: Sink, reply: object) -> None:
    token = attach(context)
    try:
        sink(reply)
    finally:
        detach(token)
