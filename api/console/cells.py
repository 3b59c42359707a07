"""Figures of reports as pages write them: times, durations, shares and numbers, by their columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from api.console.formats import DASH, moment, number, span
from api.report_views import Column, ReportView, json_member

__all__ = ["Cell", "Form", "Heading", "cells", "figure_text", "headings", "name_of"]

Form = Literal["moment", "span", "percent", "number", "text", "entries"]
MOMENTS: Final = frozenset({"flapping_since_ms", "start_ms", "end_ms", "restored_ms", "last_ms"})
"""Columns in ms that are times; all others are durations."""
PERCENT: Final = frozenset({"availability", "weighted", "worst", "share", "slo", "remaining"})
NUMBERS: Final = frozenset({"int", "bigint", "double", "map<string, int>", "map<string, double>"})


class Heading(msgspec.Struct, frozen=True):
    """A column: `member` is that of rows in the API, `sort` is what sorts by it next, "" where nothing does. `order`
    is by which the rows are sorted now: `ascending`, `descending` or "". `barred` has bars."""

    member: str
    title: str
    meaning: str
    form: Form
    sort: str
    order: str
    barred: bool


class Cell(msgspec.Struct, frozen=True):
    """What stands in a cell; `bar` is its length as a part of 1, None without one. `entries` are ids of entries."""

    text: str
    bar: float | None = None
    entries: tuple[str, ...] = ()


def headings(view: ReportView, sort: str) -> list[Heading]:
    """Return the columns of a report but those of its rows' names, and how they are sorted."""
    sorted_by, named_by = sort or view.sorting, _named_by(view)
    return [_heading(column, view, sorted_by) for column in view.columns if column.name not in named_by]


def _heading(column: Column, view: ReportView, sorted_by: str) -> Heading:
    member = json_member(column.name)
    plain = "<" not in column.type
    order = {member: "ascending", f"-{member}": "descending"}.get(sorted_by, "")
    form = _form(column)
    return Heading(
        member,
        column.name.removesuffix("_ms").replace("_", " "),
        column.meaning,
        form,
        (member if order == "descending" else f"-{member}") if plain else "",
        order,
        plain and form in ("percent", "number", "span") and column.name == view.order.removeprefix("-"),
    )


def _form(column: Column) -> Form:
    if column.name in PERCENT:
        return "percent"
    if column.name in MOMENTS:
        return "moment"
    if column.name.endswith("_ms"):
        return "span"
    if column.type.startswith("array<struct"):
        return "entries"
    return "number" if column.type in NUMBERS else "text"


def _named_by(view: ReportView) -> tuple[str, ...]:
    """Return the columns that a row's name is made of."""
    return ("cluster", "cause") if view.stored == "counts" else view.unit


def name_of(view: ReportView, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a row's name: `broker`, its cluster and its name; of incidents type, time and key."""
    columns = _named_by(view)
    if columns != ("unit",):
        return tuple(filter(None, (figure_text(row[json_member(one)], _form_of(one)) for one in columns)))
    kind, _, rest = str(row["unit"]).partition(":")
    parts = {"broker": 2, "slot": 3}.get(kind, 1)
    return (kind, *rest.split(":", parts - 1))


def _form_of(name: str) -> Form:
    return "moment" if name in MOMENTS else "text"


def cells(row: Mapping[str, Any], listed: Sequence[Heading], most: Mapping[str, float]) -> list[Cell]:
    """Return the cells of a row; `most` is the greatest value of a column that has bars."""
    return [_cell(row[one.member], one, most[one.member]) for one in listed]


def _cell(value: Any, heading: Heading, most: float) -> Cell:
    if heading.form == "entries":
        return Cell("", entries=tuple(value or ()))
    bar = None
    if heading.barred and isinstance(value, int | float):
        whole = 1.0 if heading.form == "percent" else most
        bar = min(max(value / whole, 0.0), 1.0) if whole > 0 else None
    return Cell(figure_text(value, heading.form), bar)


def figure_text(value: Any, form: Form) -> str:
    """Return a value of a cell as text, a dash for none."""
    if value is None:
        return DASH
    if isinstance(value, dict):
        return ", ".join(f"{name} {figure_text(one, form)}" for name, one in value.items()) or DASH
    if isinstance(value, list | tuple):
        return ", ".join(figure_text(one, form) for one in value) or DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _figure(value, form)
    return str(value)


def _figure(value: float, form: Form) -> str:
    if form == "moment":
        return moment(int(value))
    if form == "span":
        return span(round(value))
    if form == "percent":
        return f"{number(round(value * 100, 3)).removesuffix('.0')} %"
    return number(round(value, 3) if isinstance(value, float) else value).removesuffix(".0")
