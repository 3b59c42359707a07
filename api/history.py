"""Past routes and their changes, from the pipeline's process that has the tables."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from apiflask import APIBlueprint
from flask import Response, current_app, jsonify
from pydantic import Field
from redis.exceptions import RedisError
from rq import Queue

from api.history_queue import JobFailed, NoWorker, TimedOut, ask, queue_of
from api.name_server import name_server
from api.paging import Limit
from api.problems import Problem
from api.routes import Route
from api.shapes import Answer, Moment, Name, Query
from api.times import format_time
from registry.errors import InvalidField

bp = APIBlueprint("history", __name__, url_prefix="/v1/history")

WAIT_S = 30
EXTENSION = "history"


class AtQuery(Query):
    """`asRecorded`: members whose lease ended stay until that was written, as operators saw it then."""

    at: Moment
    as_recorded: bool = False


class BetweenQuery(Query):
    """Changes after `from`, up to `to`. `after` is the `next` of the page before."""

    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    limit: Limit = 100
    after: str = ""


class PermissionsQuery(Query):
    """Changes from `from` to `to`; without them, all in the tables."""

    from_: Annotated[Moment | None, Field(alias="from")] = None
    to: Moment | None = None
    broker: Name | None = None
    limit: Limit = 100


class Landed(Answer):
    """The times that the tables cover."""

    from_millis: int
    until_millis: int


class HistoryAnswer(Answer):
    landed: Landed


class RouteAt(HistoryAnswer):
    """The route that clients got then, without filter servers, order configuration and static topics (not recorded).
    `provisional`: a member may yet turn out to have been silent by then."""

    topic: str
    at_millis: int
    provisional: bool
    route: Route


class Caused(Answer):
    """The origin of the change: its time, its entry in the event stream, its cause, its actor and its request.
    Null is what the tables do not have."""

    topic: str
    broker_name: str
    at_millis: int | None
    event_id: str | None
    cause: str | None
    actor: str | None
    op: str | None


class Shown(Answer):
    """A topic on the brokers of one name, as a route shows it."""

    cluster: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int
    broker_addrs: dict[int, str]
    enable_acting_master: bool
    zone_name: str | None


class Change(Caused):
    """`fields` are the members that differ; `before` is null for what was added, `after` for what was removed."""

    change: Literal["added", "removed", "changed"]
    fields: tuple[str, ...]
    before: Shown | None
    after: Shown | None


class Diff(HistoryAnswer):
    from_millis: int
    to_millis: int
    provisional: bool
    changes: tuple[Change, ...]
    next: str | None


class PermissionChange(Caused):
    """4 read, 2 write; a drain takes the write bit away and gives it back."""

    before: int
    after: int


class Permissions(HistoryAnswer):
    """The newest first; `more` if there were others before."""

    from_millis: int
    to_millis: int
    changes: tuple[PermissionChange, ...]
    more: bool


RESPONSES: dict[int, str] = {
    404: "No history of these times, or no broker served the topic",
    503: "No process of the pipeline answers, or too many ask",
    504: "Not answered in time",
}


@bp.get("/routes/<topic>")
@bp.input(AtQuery, location="query")
@bp.output(RouteAt)
@bp.doc(operation_id="getPastRoute", responses=RESPONSES)
def route_at(topic: str, query_data: AtQuery) -> Response:
    """The route of a topic at a time"""
    at = query_data.at
    reply = _run_query(
        "route",
        topic=topic,
        at_ms=at,
        as_recorded=query_data.as_recorded,
        acting_master=_acting_master(),
    )
    if reply["route"] is None:
        raise Problem(404, "topic-not-found", f"no route of topic {topic!r} at {format_time(at)}")
    return jsonify(reply)  # as clients got it: members that are null are left out


@bp.get("/routes/<topic>/diff")
@bp.input(BetweenQuery, location="query")
@bp.output(Diff)
@bp.doc(operation_id="listTopicRouteChanges", responses=RESPONSES)
def diff_of_topic(topic: str, query_data: BetweenQuery) -> Diff:
    """Changes of a topic's route between two times"""
    return _diff(query_data, topic)


@bp.get("/diff")
@bp.input(BetweenQuery, location="query")
@bp.output(Diff)
@bp.doc(operation_id="listRouteChanges", responses=RESPONSES)
def diff(query_data: BetweenQuery) -> Diff:
    """Changes of all routes between two times"""
    return _diff(query_data, None)


@bp.get("/topics/<topic>/permissions")
@bp.input(PermissionsQuery, location="query")
@bp.output(Permissions)
@bp.doc(operation_id="listPermissionChanges", responses=RESPONSES)
def permissions(topic: str, query_data: PermissionsQuery) -> Permissions:
    """Changes of a topic's permissions, with time and actor"""
    if query_data.from_ is not None and query_data.to is not None:
        _expect_order(query_data.from_, query_data.to)
    reply = _run_query(
        "permissions",
        topic=topic,
        broker=query_data.broker,
        from_ms=query_data.from_,
        to_ms=query_data.to,
        limit=query_data.limit,
    )
    return Permissions.model_validate(reply)


def _diff(query: BetweenQuery, topic: str | None) -> Diff:
    _expect_order(query.from_, query.to)
    reply = _run_query(
        "diff",
        topic=topic,
        from_ms=query.from_,
        to_ms=query.to,
        limit=query.limit,
        after=query.after,
        acting_master=_acting_master(),
    )
    return Diff.model_validate(reply)


def _expect_order(from_ms: int, to_ms: int) -> None:
    if to_ms < from_ms:
        raise InvalidField("to", "before from")


def _acting_master() -> bool:
    """Return the present setting: no table has the former one."""
    return name_server().options().support_acting_master


def _run_query(question: str, **arguments: Any) -> dict[str, Any]:
    """Return the reply of the process that has the tables. Raises Problem."""
    options = name_server().given
    arguments["namespace"] = options.namespace
    try:
        with _waiting() as queue:
            reply: dict[str, Any] = ask(queue, question, arguments, WAIT_S)
    except NoWorker:
        detail = (
            f"no process of the pipeline answers for namespace {options.namespace!r}; "
            "start one: mqpipeline answer --warehouse FOLDER --queue URL"
        )
        raise Problem(503, "history-not-served", detail) from None
    except TimedOut:
        raise Problem(504, "history-too-slow", f"no answer within {WAIT_S} s") from None
    except JobFailed:
        raise Problem(500, "history-failed", "the pipeline could not answer; its log says why") from None
    except RedisError as error:
        raise Problem(503, "queue-unavailable", f"the job queue cannot be reached: {error}") from None
    if reply.pop("outside"):
        raise Problem(404, "not-landed", _outside(reply["landed"]))
    return reply


def _outside(landed: dict[str, int] | None) -> str:
    if landed is None:
        return "the pipeline has landed nothing yet: mqpipeline run"
    first, last = format_time(landed["fromMillis"]), format_time(landed["untilMillis"])
    return f"the pipeline has landed what was from {first} until {last}: ask within it, or run mqpipeline run"


class _JobQueue:
    """The job queue of one application, and a limit of its threads that wait: others have to answer meanwhile."""

    def __init__(self, queue: Queue, threads: int) -> None:
        self.queue = queue
        self.waiting = threading.BoundedSemaphore(max(1, threads // 2))


@contextmanager
def _waiting() -> Iterator[Queue]:
    jobs = _job_queue()
    if not jobs.waiting.acquire(blocking=False):
        raise Problem(503, "history-busy", "too many questions wait for an answer here")
    try:
        yield jobs.queue
    finally:
        jobs.waiting.release()


def _job_queue() -> _JobQueue:
    options = name_server().given
    jobs: _JobQueue | None = current_app.extensions.get(EXTENSION)
    if jobs is None:
        queue = queue_of(options.rq_redis_url or options.redis_url, options.namespace, WAIT_S)
        jobs = current_app.extensions.setdefault(EXTENSION, _JobQueue(queue, options.http_threads))
    return jobs
