"""What the pipeline found out last: availability, budgets, churn, incidents. Only read here; a run writes it."""

from collections.abc import Iterable, Sequence
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, get_args

import msgspec
from apiflask import APIBlueprint
from pydantic import Field

from api.name_server import name_server
from api.paging import PageQuery
from api.problems import Problem
from api.shapes import Answer
from registry.errors import InvalidField
from registry.keys import CHURN_TOP
from registry.plans import Call, call
from registry.reports import Served, served

bp = APIBlueprint("reports", __name__, url_prefix="/v1/reports")

PLAIN = {int, float, str, bool, NoneType}
"""What rows can be sorted by."""


def _column(field: str) -> str:
    """The pipeline's name of it: `up_millis` is its `up_ms`."""
    return field.replace("millis", "ms")


class RowsQuery(PageQuery):
    """`unit` leaves what it names and what is below it: `broker`, `broker:c1`, `broker:c1:broker-a`. `sort` is a
    member of the rows, with `-` before it from high to low; nulls come last."""

    unit: str = ""
    sort: str = ""


class WindowQuery(RowsQuery):
    """`1h`, `24h`, `7d`, `30d` (up to the run), `day:2026-01-31`, `month:2026-01`, as far as they are served."""

    window: str = "24h"


class Row(Answer):
    """What was found of a unit: `cluster:<c>`, `broker:<c>:<b>`, `slot:<c>:<b>:<id>`, `topic:<t>`."""

    unit: str

    @classmethod
    def of(cls, unit: str, text: str) -> Self:
        """Of its JSON; the pipeline may say more of it than is told here."""
        columns = msgspec.json.decode(text) | {"unit": unit}
        return cls(**{name: columns.get(_column(name)) for name in cls.model_fields})


class WindowRow(Row):
    """`provisional`: a removal that is recorded late may still change it."""

    window: str
    from_millis: int
    to_millis: int
    provisional: bool


class AvailabilityRow(WindowRow):
    """`availability` is up / (up + down), null where neither was; `weighted` a topic's by write queues; `worst` a
    broker's least in any window of that length."""

    up_millis: int
    down_millis: int
    planned_millis: int
    unknown_millis: int
    availability: float | None
    weighted: float | None
    outages: int
    mtbf_millis: float | None
    mttr_millis: float | None
    worst: dict[str, float | None] | None


class SloRow(WindowRow):
    """The error budget: `remaining` is a share of it, below 0 once it is overspent. `burn` is by the length of the
    windows; `alerts` are the rates that both of their windows are over."""

    slo: float
    budget_millis: float | None
    spent_millis: float | None
    remaining: float | None
    burn: dict[str, float | None] | None
    alerts: tuple[str, ...] | None


class DetectRow(WindowRow):
    """From the last sign of life until routes left the broker out; `censored` are silent and still there."""

    n: int
    p50_millis: float | None
    p95_millis: float | None
    p99_millis: float | None
    max_millis: float | None
    lower_p50_millis: float | None
    without_last_seen: int | None
    censored: int | None
    record_delay_p95_millis: float | None
    record_delay_max_millis: float | None


class RepairRow(WindowRow):
    """How long outages take to end (Kaplan-Meier); null where too few of them have."""

    outages: int
    n_open: int
    p50_millis: float | None
    p90_millis: float | None
    p95_millis: float | None


class FlapRow(WindowRow):
    score: float
    flapping: bool | None
    flapping_since_millis: int | None
    episodes: int | None


class SkewRow(WindowRow):
    """Of a cluster over its brokers, of a topic over its own: write queues, and topics."""

    queues_max_to_mean: float | None
    queues_gini: float | None
    topics_max_to_mean: float | None
    topics_gini: float | None
    brokers: int | None


class TimeoutRow(WindowRow):
    """Of the time between beats. `suggestedTimeoutMillis` is null with less than 1,000 of them."""

    gaps: int
    p50_millis: float | None
    p95_millis: float | None
    p99_millis: float | None
    p999_millis: float | None
    max_millis: float | None
    missed: int | None
    suggested_timeout_millis: float | None


class ConflictRow(Row):
    """Claims to a name, an id or an address that another had."""

    type: str
    count: int
    last_millis: int
    detail: str | None


class IncidentRow(Row):
    """`unit` is `<type>:<start>`, and `:<key>` where there is one. `members` were gone, that `share` of those there
    were; `ids` are the first of its entries in the event stream."""

    type: str
    key: str
    start_millis: int
    end_millis: int | None
    restored_millis: int | None
    members: int
    share: float | None
    clusters: tuple[str, ...] | None
    causes: dict[str, int] | None
    ids: tuple[str, ...] | None


class ChurnRow(Row):
    """`unit` is `<cluster>:<cause>`; `pairs` are the topics on brokers that its acts touched."""

    cluster: str
    cause: str
    acts: int
    pairs: int


class ChangedTopic(Answer):
    topic: str
    changes: int


class Windows(Answer):
    availability: tuple[str, ...]
    churn: tuple[str, ...]


class Reports(Answer):
    """The run whose reports are served. `holes`, `phantoms`, `rejected` are entries of the stream that it missed,
    found to be of a lost primary, could not understand; `leftOut` are rows too many to be served."""

    run: str
    as_of_millis: int
    age_millis: int
    took_millis: int
    events: int
    holes: int
    phantoms: int
    rejected: int
    provisional: bool
    left_out: int
    windows: Windows


class Rows(Answer):
    """`next` is the unit after which the rest begins; another `run` than before means other rows."""

    run: str
    as_of_millis: int
    next: str | None


class Availability(Rows):
    rows: tuple[AvailabilityRow, ...]


class Slo(Rows):
    rows: tuple[SloRow, ...]


class Detect(Rows):
    rows: tuple[DetectRow, ...]


class Repair(Rows):
    rows: tuple[RepairRow, ...]


class Flap(Rows):
    rows: tuple[FlapRow, ...]


class Skew(Rows):
    rows: tuple[SkewRow, ...]


class Timeouts(Rows):
    rows: tuple[TimeoutRow, ...]


class Conflicts(Rows):
    rows: tuple[ConflictRow, ...]


class Incidents(Rows):
    rows: tuple[IncidentRow, ...]


class Churn(Rows):
    """`topics` are those that changed most."""

    rows: tuple[ChurnRow, ...]
    topics: tuple[ChangedTopic, ...] = Field(default=())


AnyRow = TypeVar("AnyRow", bound=Row)


@bp.get("")
@bp.output(Reports)
@bp.doc(responses=[404])
def reports() -> Reports:
    """The run that made the reports"""
    found = _served()
    meta = msgspec.structs.asdict(found.meta)
    columns: dict[str, Any] = {name: meta.get(_column(name)) for name in Reports.model_fields}
    columns["age_millis"] = found.now_ms - found.meta.as_of_ms
    columns["windows"] = Windows(
        availability=found.meta.windows("availability"), churn=found.meta.windows("churn")
    )
    return Reports(**columns)


@bp.get("/availability")
@bp.input(WindowQuery, location="query")
@bp.output(Availability)
@bp.doc(responses=[404])
def availability(query_data: WindowQuery) -> Availability:
    """Availability of clusters, brokers and the worst topics"""
    keys = name_server().keys
    found = _served(call("HGETALL", keys.report_availability(query_data.window)))
    _expect_window(found, "availability", query_data.window)
    return Availability(
        **_page(found, AvailabilityRow, _of_hash(AvailabilityRow, found), query_data, "availability")
    )


@bp.get("/slo")
@bp.input(RowsQuery, location="query")
@bp.output(Slo)
@bp.doc(responses=[404])
def slo(query_data: RowsQuery) -> Slo:
    """Error budgets and burn rates of clusters"""
    found = _hash("slo")
    return Slo(**_page(found, SloRow, _of_hash(SloRow, found), query_data, "remaining"))


@bp.get("/detect")
@bp.input(RowsQuery, location="query")
@bp.output(Detect)
@bp.doc(responses=[404])
def detect(query_data: RowsQuery) -> Detect:
    """How long a death went unnoticed"""
    found = _hash("detect")
    return Detect(**_page(found, DetectRow, _of_hash(DetectRow, found), query_data, "-p50Millis"))


@bp.get("/repair")
@bp.input(RowsQuery, location="query")
@bp.output(Repair)
@bp.doc(responses=[404])
def repair(query_data: RowsQuery) -> Repair:
    """How long outages take to end"""
    found = _hash("repair")
    return Repair(**_page(found, RepairRow, _of_hash(RepairRow, found), query_data, "-outages"))


@bp.get("/flap")
@bp.input(RowsQuery, location="query")
@bp.output(Flap)
@bp.doc(responses=[404])
def flap(query_data: RowsQuery) -> Flap:
    """Slots that come and go"""
    found = _hash("flap:values")
    return Flap(**_page(found, FlapRow, _of_hash(FlapRow, found), query_data, "-score"))


@bp.get("/churn")
@bp.input(WindowQuery, location="query")
@bp.output(Churn)
@bp.doc(responses=[404])
def churn(query_data: WindowQuery) -> Churn:
    """Changes by cluster and cause, and the topics changed most"""
    keys = name_server().keys
    found = _served(call("HGETALL", keys.report_churn(query_data.window)))
    _expect_window(found, "churn", query_data.window)
    counts = dict(found.replies[0])
    top = msgspec.json.decode(counts.pop(CHURN_TOP, "[]"))
    rows = [_churn_row(unit, text) for unit, text in counts.items()]
    return Churn(
        **_page(found, ChurnRow, rows, query_data, "-acts"),
        topics=tuple(ChangedTopic(**topic) for topic in top),
    )


@bp.get("/skew")
@bp.input(RowsQuery, location="query")
@bp.output(Skew)
@bp.doc(responses=[404])
def skew(query_data: RowsQuery) -> Skew:
    """How unevenly queues and topics lie on brokers"""
    found = _hash("skew")
    return Skew(**_page(found, SkewRow, _of_hash(SkewRow, found), query_data, "-queuesMaxToMean"))


@bp.get("/conflicts")
@bp.input(RowsQuery, location="query")
@bp.output(Conflicts)
@bp.doc(responses=[404])
def conflicts(query_data: RowsQuery) -> Conflicts:
    """Brokers that claimed what another had, the latest first"""
    found = _sorted_set("conflicts")
    rows = [ConflictRow.of(_columns(text)["unit"], text) for text in found.replies[0]]
    return Conflicts(**_page(found, ConflictRow, rows, query_data, "-lastMillis"))


@bp.get("/incidents")
@bp.input(RowsQuery, location="query")
@bp.output(Incidents)
@bp.doc(responses=[404])
def incidents(query_data: RowsQuery) -> Incidents:
    """Many members gone at once, the latest first"""
    found = _sorted_set("incidents")
    rows = [IncidentRow.of(_incident(text), text) for text in found.replies[0]]
    return Incidents(**_page(found, IncidentRow, rows, query_data, "-startMillis"))


@bp.get("/timeouts")
@bp.input(RowsQuery, location="query")
@bp.output(Timeouts)
@bp.doc(responses=[404])
def timeouts(query_data: RowsQuery) -> Timeouts:
    """Time between beats, and the broker timeout it suggests"""
    found = _hash("timeouts")
    return Timeouts(**_page(found, TimeoutRow, _of_hash(TimeoutRow, found), query_data, "-missed"))


def _served(*reads: Call) -> Served:
    server = name_server()
    found = server.run(served(server.keys, *reads))
    if found is None:
        raise Problem(
            404,
            "report-not-found",
            "no report here: a run of the pipeline makes one, and it is kept for 7 days",
        )
    return found


def _hash(name: str) -> Served:
    return _served(call("HGETALL", name_server().keys.report(name)))


def _sorted_set(name: str) -> Served:
    return _served(call("ZRANGE", name_server().keys.report(name), 0, -1))


def _expect_window(found: Served, report: str, window: str) -> None:
    windows = found.meta.windows(report)
    if window not in windows:
        told = ", ".join(windows) or "none"
        raise Problem(404, "report-not-found", f"no window {window!r}; there are: {told}", field="window")


def _incident(text: str) -> str:
    columns = _columns(text)
    named = (columns["type"], str(columns["start_ms"]), columns["key"])
    return ":".join(filter(None, named))


def _columns(text: str) -> dict[str, Any]:
    columns: dict[str, Any] = msgspec.json.decode(text)
    return columns


def _of_hash(kind: type[AnyRow], found: Served) -> list[AnyRow]:
    return [kind.of(unit, text) for unit, text in found.replies[0].items()]


def _churn_row(unit: str, text: str) -> ChurnRow:
    cluster, _, cause = unit.rpartition(":")
    acts, _, pairs = text.partition(",")
    return ChurnRow(unit=unit, cluster=cluster, cause=cause, acts=int(acts), pairs=int(pairs))


def _page(
    found: Served, kind: type[AnyRow], rows: Iterable[AnyRow], query: RowsQuery, order: str
) -> dict[str, Any]:
    """The page asked for, as members of an answer."""
    wanted = [row for row in rows if not query.unit or f"{row.unit}:".startswith(f"{query.unit}:")]
    listed = _in_order(kind, wanted, query.sort or order)
    start = 0
    if query.after:
        units = [row.unit for row in listed]
        if query.after not in units:
            raise InvalidField("after", "another run has other rows: begin with the first page")
        start = units.index(query.after) + 1
    end = start + query.limit
    return {
        "run": found.meta.run,
        "as_of_millis": found.meta.as_of_ms,
        "rows": tuple(listed[start:end]),
        "next": listed[end - 1].unit if end < len(listed) else None,
    }


def _in_order(kind: type[AnyRow], rows: Sequence[AnyRow], order: str) -> list[AnyRow]:
    """By a member, rows alike by unit, those without it last."""
    alias = order.removeprefix("-")
    sortable = {
        str(field.alias): name for name, field in kind.model_fields.items() if _is_plain(field.annotation)
    }
    if alias not in sortable:
        raise InvalidField("sort", f"not one of {', '.join(sorted(sortable))}")
    name = sortable[alias]
    by_unit = sorted(rows, key=lambda row: row.unit)
    known = [row for row in by_unit if getattr(row, name) is not None]
    known.sort(key=lambda row: getattr(row, name), reverse=order.startswith("-"))
    return known + [row for row in by_unit if getattr(row, name) is None]


def _is_plain(annotation: object) -> bool:
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return set(kinds) <= PLAIN
