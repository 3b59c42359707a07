"""Reports of the pipeline's last run: which there are, and the rows of each, by the catalogue (api/report_views.py)."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from flask import Response, request

from api.console.asking import Query, Reply, ask, path
from api.console.blueprint import bp
from api.console.cells import Cell, Heading, cells, headings, name_of
from api.console.page import show
from api.problem_names import type_of
from api.report_views import VIEWS, ReportView

__all__: list[str] = []

LIMIT: Final = 50
BY_NAME: Final[Mapping[str, ReportView]] = {view.name: view for view in VIEWS}
WINDOW: Final = "24h"
"""Where it is served; else the first one that is."""


class Line(msgspec.Struct, frozen=True):
    """A row of a report: the parts of its name, and its cells."""

    unit: tuple[str, ...]
    cells: list[Cell]


@bp.get("/reports")
def reports() -> Response:
    """Which reports there are"""
    reply = ask("GET", path("reports"))
    absent = reply.kind == "report-not-found"  # which is a state of this page, and no error
    return show("reports.html", "reports", replies=() if absent else (reply,), reply=reply, views=VIEWS)


@bp.get("/reports/<name>")
def report(name: str) -> Response:
    """The rows of a report"""
    view = BY_NAME.get(name)
    if view is None:
        missing = Reply(404, {"type": type_of("report-not-found"), "detail": f"there is no report {name!r}"})
        return show("failure.html", "reports", replies=(missing,), reply=missing)
    run = ask("GET", path("reports"))
    windows = run.body["windows"].get(name, ()) if run.ok else ()
    given = {part: request.args.get(part, "").strip() for part in ("unit", "sort", "window")}
    if view.has_windows and not given["window"]:
        given["window"] = WINDOW if WINDOW in windows else next(iter(windows), WINDOW)
    window = given["window"] if view.has_windows else None
    query: Query = {**given, "window": window, "limit": LIMIT, "after": request.args.get("after", "")}
    reply = ask("GET", path("reports", name), query) if run.ok else run
    listed = headings(view, given["sort"])
    return show(
        "report.html",
        "reports",
        replies=(reply,),
        view=view,
        given=given,
        windows=windows,
        run=run,
        reply=reply,
        headings=listed,
        lines=_lines(reply, view, listed),
    )


def _lines(reply: Reply, view: ReportView, listed: list[Heading]) -> list[Line]:
    rows = reply.body["rows"] if reply.ok else ()
    most = {one.member: max((_number(row[one.member]) for row in rows), default=0.0) for one in listed}
    return [Line(name_of(view, row), cells(row, listed, most)) for row in rows]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
