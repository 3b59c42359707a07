"""Reports of the pipeline's last run: availability, budgets, churn, incidents. A run writes them (mqpipeline/serving).

Paths, rows and their order follow from the pipeline's catalogue of reports (api/report_views.py)."""

from collections.abc import Iterable, Iterator, Sequence
from types import GenericAlias, NoneType, UnionType
from typing import Any, Final, Self, TypeVar, get_args

import msgspec
from apiflask import APIBlueprint
from pydantic import Field, create_model

from api.name_server import name_server
from api.paging import PageQuery
from api.problems import Problem
from api.report_views import VIEWS, ReportView, member_of
from api.shapes import Answer
from registry.errors import InvalidField
from registry.plans import Call, call
from registry.reports import Served, served

bp = APIBlueprint("reports", __name__, url_prefix="/v1/reports")

PLAIN = {int, float, str, bool, NoneType}
"""Types of members by which rows can be sorted."""


TOP_TOPICS: Final = "top"
"""The field of a key with counts that holds topics; every other has a colon."""
TYPES: Final[dict[str, Any]] = {
    "string": str,
    "boolean": bool,
    "int": int,
    "bigint": int,
    "double": float,
    "array<string>": tuple[str, ...],
    "array<struct<ms: bigint, n: int>>": tuple[str, ...],
    "map<string, int>": dict[str, int],
    "map<string, double>": dict[str, float | None],
}
"""The JSON type of a column by its SQL type."""


def _column(field: str) -> str:
    """Return the column of a JSON member: `up_millis` is `up_ms`."""
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
    """The figures of a unit: `cluster:<c>`, `broker:<c>:<b>`, `slot:<c>:<b>:<id>`, `topic:<t>`."""

    unit: str

    @classmethod
    def of(cls, columns: dict[str, Any]) -> Self:
        """Return the row of these columns; those that the pipeline adds are left out."""
        members: dict[str, Any] = {name: columns.get(_column(name)) for name in cls.model_fields}
        return cls(**members)


class WindowRow(Row):
    """`provisional`: a removal that is recorded late may still change it."""

    window: str
    from_millis: int
    to_millis: int
    provisional: bool


class ChangedTopic(Answer):
    topic: str
    changes: int


class Windows(Answer):
    availability: tuple[str, ...]
    churn: tuple[str, ...]


class Reports(Answer):
    """The run whose reports are served. Of the entries of the stream it missed `holes`, could not read `rejected`, and
    left out `phantoms` of a failed primary, `repeats`, `unknown` kinds, `incomplete` groups; `waiting` are not in the
    tables yet. `membersDiffering` and `pairsDiffering` are between the tables and the checkpoint of `roundMillis`: a
    defect if it `proves`. `leftOut` are rows too many to be served. `publishedMillis` is when they were put here."""

    run: str
    as_of_millis: int
    age_millis: int
    took_millis: int
    published_millis: int | None
    events: int
    holes: int
    phantoms: int
    rejected: int
    repeats: int | None
    unknown: int | None
    incomplete: int | None
    waiting: int | None
    incarnations: int | None
    round_millis: int | None
    proves: bool | None
    members_differing: int | None
    pairs_differing: int | None
    provisional: bool
    left_out: int
    windows: Windows


class Rows(Answer):
    """`next` is the unit after which the rest begins; another `run` than before means other rows."""

    run: str
    as_of_millis: int
    next: str | None


class ChurnRows(Rows):
    """`topics` are those that changed most."""

    topics: tuple[ChangedTopic, ...] = Field(default=())


AnyRow = TypeVar("AnyRow", bound=Row)


@bp.get("")
@bp.output(Reports)
@bp.doc(operation_id="getReports", responses=[404])
def reports() -> Reports:
    """The run that made the reports"""
    run = _served()
    meta = msgspec.structs.asdict(run.meta)
    columns: dict[str, Any] = {name: meta.get(_column(name)) for name in Reports.model_fields}
    columns["age_millis"] = run.now_ms - run.meta.as_of_ms
    columns["windows"] = Windows(
        availability=run.meta.windows("availability"), churn=run.meta.windows("churn")
    )
    return Reports(**columns)


def _row_class(report: ReportView) -> type[Row]:
    """Return what the API shows of a report's rows: its columns, and the window where there is one for each row."""
    members: dict[str, Any] = {
        member_of(column.name): TYPES[column.type] | None if column.nullable else TYPES[column.type]
        for column in report.columns
    }
    has_window = report.stored in ("windows", "units", "scores")
    return create_model(
        f"{report.name.removesuffix('s').title()}Row",
        __base__=WindowRow if has_window else Row,
        __doc__=report.about,
        **members,
    )


def _body_class(report: ReportView, row: type[Row]) -> type[Rows]:
    rows: Any = GenericAlias(tuple, (row, ...))
    base = ChurnRows if report.stored == "counts" else Rows
    return create_model(report.name.title(), __base__=base, rows=rows)


def _route(report: ReportView) -> None:
    """Add the route of a report."""
    row = _row_class(report)
    body = _body_class(report, row)

    @bp.get(f"/{report.name}", endpoint=report.name)
    @bp.input(WindowQuery if report.has_windows else RowsQuery, location="query")
    @bp.output(body)
    @bp.doc(operation_id=f"get{report.name.title()}Report", summary=report.title, responses=[404])
    def rows(query_data: RowsQuery) -> Rows:
        window = query_data.window if isinstance(query_data, WindowQuery) else ""
        key = name_server().keys.report(report.key_of(window))
        by_time = report.stored == "times"
        run = _served(call("ZRANGE", key, 0, -1) if by_time else call("HGETALL", key))
        if report.has_windows:
            _expect_window(run, report.name, window)
        (reply,) = run.replies
        more: dict[str, Any] = {"topics": _top_topics(reply)} if report.stored == "counts" else {}
        listed = [row.of(columns) for columns in _columns(report, reply)]
        return body(**_page(run, row, listed, query_data, report.sorting), **more)


for _view in VIEWS:
    _route(_view)


def _columns(report: ReportView, reply: Any) -> Iterator[dict[str, Any]]:
    """Yield the columns of each row of the key's reply, `unit` among them."""
    if report.stored == "times":
        for text in reply:
            columns = msgspec.json.decode(text)
            yield columns | {"unit": ":".join(filter(None, (str(columns[name]) for name in report.unit)))}
    elif report.stored == "counts":
        for unit, text in reply.items():
            if unit != TOP_TOPICS:
                (cluster, _, cause), (acts, _, pairs) = unit.rpartition(":"), text.partition(",")
                yield {
                    "unit": unit,
                    "cluster": cluster,
                    "cause": cause,
                    "acts": int(acts),
                    "pairs": int(pairs),
                }
    else:
        for unit, text in reply.items():
            yield msgspec.json.decode(text) | {"unit": unit}


def _top_topics(reply: dict[str, str]) -> tuple[ChangedTopic, ...]:
    return tuple(ChangedTopic(**topic) for topic in msgspec.json.decode(reply.get(TOP_TOPICS, "[]")))


def _served(*reads: Call) -> Served:
    server = name_server()
    run = server.run(served(server.keys, *reads))
    if run is None:
        raise Problem(
            404,
            "report-not-found",
            "no report here: a run of the pipeline makes one, and it is kept for 7 days",
        )
    return run


def _expect_window(run: Served, report: str, window: str) -> None:
    windows = run.meta.windows(report)
    if window not in windows:
        served = ", ".join(windows) or "none"
        raise Problem(404, "report-not-found", f"no window {window!r}; there are: {served}", field="window")


def _page(
    run: Served, kind: type[AnyRow], rows: Iterable[AnyRow], query: RowsQuery, order: str
) -> dict[str, Any]:
    """Return the requested page as members of the reply."""
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
        "run": run.meta.run,
        "as_of_millis": run.meta.as_of_ms,
        "rows": tuple(listed[start:end]),
        "next": listed[end - 1].unit if end < len(listed) else None,
    }


def _in_order(kind: type[AnyRow], rows: Sequence[AnyRow], order: str) -> list[AnyRow]:
    """Return the rows sorted by a member, then by unit; those without it last."""
    alias = order.removeprefix("-")
    sortable = {
        str(field.alias): name for name, field in kind.model_fields.items() if _is_plain(field.annotation)
    }
    if alias not in sortable:
        raise InvalidField("sort", f"not one of {', '.join(sorted(sortable))}")
    name = sortable[alias]
    by_unit = sorted(rows, key=lambda row: row.unit)
    present = [row for row in by_unit if getattr(row, name) is not None]
    present.sort(key=lambda row: getattr(row, name), reverse=order.startswith("-"))
    return present + [row for row in by_unit if getattr(row, name) is None]


def _is_plain(annotation: object) -> bool:
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return set(kinds) <= PLAIN
