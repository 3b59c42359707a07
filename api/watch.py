"""Changes as they are recorded: Server-Sent Events, or one answer as soon as there is something (docs/watch.md)."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated, Any, Final

from apiflask import APIBlueprint, APIFlask
from flask import Response, current_app, request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from api.counters import COUNTERS
from api.entries import Entry, Text
from api.guard import guard
from api.name_server import NameServer, name_server
from api.problems import Problem
from api.shapes import Answer, EntryId, Query
from api.transport.answer import Answer as Outgoing
from api.transport.answer import Handover
from api.watchers.forms import LONG_POLL
from api.watchers.history import History
from api.watchers.thread import Watchers, WatchRequest
from api.watchers.watcher import Audience
from registry.events.entry import FIRST, EventId
from registry.events.watched import Wanted
from registry.keys import Keys
from registry.plans import Plan, call

__all__ = ["bp", "install"]

bp = APIBlueprint("watch", __name__, url_prefix="/v1/watch")
EXTENSION: Final = "watchers"
SOCKET: Final = "gunicorn.socket"
EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
WAIT_MOST_MS: Final = 60_000
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""nginx keeps answers back until they end, or for some KB."""


class WatchQuery(Query):
    """`after` is the `id` of a message, or `next`: what was recorded behind it is sent; without it, what comes from now
    on. `kind` may be several, with commas. A watcher of a topic also gets changes of the brokers that hold it.
    `waitMillis` is for how long an answer in JSON may wait."""

    after: EntryId | None = None
    kind: Text | None = None
    topic: Text | None = None
    broker: Text | None = None
    cluster: Text | None = None
    actor: Text | None = None
    wait_millis: Annotated[int, Field(ge=0, le=WAIT_MOST_MS)] = 30_000

    @property
    def wanted(self) -> Wanted:
        """What entries have to be."""
        kinds = frozenset(filter(None, (self.kind or "").split(",")))
        return Wanted(kinds, self.actor, self.topic, self.broker, self.cluster)


class LastEventId(BaseModel):
    """What browsers send when they come back: it is newer than `after` of their URL."""

    model_config = ConfigDict(frozen=True)

    last_event_id: EntryId | None = Field(None, alias="Last-Event-ID")

    @model_validator(mode="before")
    @classmethod
    def _by_its_name(cls, headers: dict[str, str]) -> dict[str, str | None]:
        """Return the header as errors name it; APIFlask passes all, by names of fields."""
        return {"Last-Event-ID": headers.get("last_event_id") or None}


class WatchMessage(Answer):
    """Entries of one change, which belong together. `id` is where to go on behind it. `reset`, if it is not null:
    entries may be missing before this, or some that were sent never happened; read again what you keep."""

    id: str
    reset: str | None
    events: tuple[Entry, ...]


class LongPollAnswer(Answer):
    """What a long poll is answered: no messages if none came in time. `next` is where to go on; null while the end of
    the stream is not known, since the store is away."""

    messages: tuple[WatchMessage, ...]
    next: str | None


def install(app: APIFlask, server: NameServer) -> None:
    """Give an application its watchers, which `guard` judges."""
    watchers = Watchers(server.keys, server.given, app.extensions["guard"].admits_still)
    app.extensions[EXTENSION] = watchers


@bp.get("")
@bp.input(WatchQuery, location="query")
@bp.input(LastEventId, location="headers")
@bp.output(LongPollAnswer)
@bp.doc(operation_id="watchEvents")
def watch(query_data: WatchQuery, headers_data: LastEventId) -> Any:
    """Changes as they are recorded

    As Server-Sent Events (`Accept: text/event-stream`, or any), without end; as one answer in JSON, once there is a
    message (`Accept: application/json`)."""
    server, after = name_server(), headers_data.last_event_id or query_data.after
    newest = server.run(_newest(server.keys))  # and a store that is away is said now
    position = None if after is None else EventId.parse(after)
    outgoing: Outgoing | None = request.environ.get(SOCKET)
    if outgoing is None:
        return _at_once(server, newest if position is None else position, query_data.wanted)
    watchers: Watchers = current_app.extensions[EXTENSION]
    if watchers.is_full:
        COUNTERS.limited("httpMaxWatchers")
        detail = "this worker has as many watchers as httpMaxWatchers allows; ask again, or raise it"
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-watchers", detail)
    is_long_poll = request.accept_mimetypes.best_match((EVENT_STREAM, JSON)) == JSON
    watch_request = WatchRequest(
        Audience(query_data.wanted, is_long_poll, request.environ["SERVER_PROTOCOL"] != "HTTP/1.0"),
        guard().admission(),
        position,
        query_data.wait_millis / 1000,
    )
    body = _handed_over(outgoing, Handover(watchers, watch_request))
    return Response(body, mimetype=JSON if is_long_poll else EVENT_STREAM, headers=HEADERS)


def _handed_over(outgoing: Outgoing, handover: Handover) -> Iterator[bytes]:
    """Yield no part of the answer: behind its head it is the taker's. Not so of an error that was made of it since."""
    outgoing.handover = handover
    yield from ()


def _at_once(server: NameServer, after: EventId, wanted: Wanted) -> Response:
    """Return what there is behind a position now: the answer under another server than gunicorn with our workers."""
    messages, _ = server.run(History(server.keys, after).next_messages())
    chosen = ((message, message.wanted(wanted, None)) for message in messages)
    texts = [LONG_POLL.text(message, entries) for message, entries in chosen if entries is not None]
    position = messages[-1].position if messages else after
    return Response(LONG_POLL.joined(texts, position), mimetype=JSON, headers=HEADERS)


def _newest(keys: Keys) -> Plan[EventId]:
    """Return the id of the newest entry, FIRST without one."""
    entries = yield call("XREVRANGE", keys.events, "+", "-", "COUNT", 1)
    return EventId.parse(entries[0][0]) if entries else FIRST
