"""Panels of a dashboard as SVG, from answers of Prometheus: what of Grafana's panels is needed to judge queries, units,
legends and thresholds."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

import msgspec

WIDTH, HEIGHT = 420, 180
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 26, 60
ACROSS, DOWN = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
COLOURS: Final = (
    *("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0"),
    *("#37872d", "#fade2a", "#447ebc", "#c15c17"),
)
LEGENDS, LINES, STATS = 8, 9, 4
"""So many legends, lines of a table and numbers are drawn; others are counted."""
LEGEND_CHARS: Final = 30
TICKS: Final = 3
TICK_S: Final = 60
CELLS, BUCKETS = 40, 10
"""Of a heatmap."""
NAMED: Final = {"green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "text": "#ccccdc"}
SUFFIXES: Final = {"reqps": " req/s", "ops": " ops/s", "cps": " c/s", "Bps": "B/s", "bytes": "B"}
THOUSANDS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
TIMES: Final = (
    *((86_400, 1 / 86_400, "d"), (3600, 1 / 3600, "h"), (60, 1 / 60, "min")),
    *((1, 1, "s"), (1e-3, 1e3, "ms"), (0, 1e6, "µs")),
)


class Series(msgspec.Struct, frozen=True):
    """A series with its legend, and times with values, NaN among them."""

    legend: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.points[-1][1]


class Panel:
    """A panel as the dashboard's file has it, in the time that is drawn."""

    def __init__(self, model: Mapping[str, Any], begin: float, end: float, step_s: float) -> None:
        self.kind: str = model["type"]
        self.title: str = model["title"]
        self.step_s = step_s
        self.field: Mapping[str, Any] = model["fieldConfig"]["defaults"]
        self.steps: Sequence[Mapping[str, Any]] = self.field.get("thresholds", {}).get("steps", ())
        changes = model.get("transformations", ())
        self.hidden = {name for change in changes for name in change["options"]["excludeByName"]}
        self._begin = begin
        self._seconds = end - begin

    def x(self, at: float) -> float:
        return LEFT + (at - self._begin) / self._seconds * ACROSS

    def text(self, value: float) -> str:
        """Return what the panel writes for a value."""
        mapped: str | None = self._mapping(value).get("text")
        return mapped or formatted(value, self.field["unit"])

    def colour(self, value: float) -> str:
        """Return the colour of a value's text, or of the threshold that it has reached."""
        reached = [step["color"] for step in self.steps if step["value"] is None or value >= step["value"]]
        return NAMED[self._mapping(value).get("color") or (reached[-1] if reached else "text")]

    def ticks(self) -> Iterator[str]:
        for at in range(0, int(self._seconds) + 1, TICK_S):
            x = self.x(self._begin + at)
            yield line(x, TOP, x, TOP + DOWN, "grid")
            yield text(x, TOP + DOWN + 13, f"{at // 60}:{at % 60:02d}", "small", "middle")

    def _mapping(self, value: float) -> Mapping[str, str]:
        options = [mapping["options"] for mapping in self.field.get("mappings", ())]
        return next((texts[f"{value:g}"] for texts in options if f"{value:g}" in texts), {})


def formatted(value: float, unit: str) -> str:
    """Return the value as Grafana writes it in this unit, about."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        factor, word = next((factor, word) for least, factor, word in TIMES if abs(value) >= least)
        return f"{value * factor:.3g} {word}" if value else "0 s"
    for least, letter in THOUSANDS:
        if abs(value) >= least:
            return f"{value / least:.3g} {letter}{SUFFIXES.get(unit, '').strip()}"
    return f"{value:.3g}{SUFFIXES.get(unit, '')}"


def legend_of(template: str, labels: Mapping[str, str]) -> str:
    """Return the legend; where there is no template, the labels."""
    if template:
        return re.sub(r"{{\s*(\w+)\s*}}", lambda name: labels.get(name[1], ""), template)
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def panel_svg(panel: Panel, series: Sequence[Series]) -> str:
    """Return the panel as SVG of WIDTH x HEIGHT."""
    drawn = (
        "".join(DRAWN[panel.kind](panel, series))
        if series
        else text(WIDTH / 2, HEIGHT / 2, "No data", "", "middle")
    )
    frame = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#181b1f"/>'
    return f'<svg width="{WIDTH}" height="{HEIGHT}">{frame}{text(8, 17, panel.title, "title")}{drawn}</svg>'


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", style: str = "") -> str:
    where = f'x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}" style="{style}"'
    return f"<text {where}>{escape(words)}</text>"


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "", style: str = "") -> str:
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" class="{kind}" style="{style}"/>'


def box(x: float, y: float, width: float, height: float, colour: str, opacity: float = 1.0) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} fill="{colour}" opacity="{opacity:.2f}"/>'


def _lines(panel: Panel, series: Sequence[Series]) -> Iterator[str]:
    """Lines, which a gap or a NaN breaks, with dashed thresholds."""
    values = [value for one in series for _, value in one.points if math.isfinite(value)] or [0.0]
    low, high = panel.field.get("min", min(values)), panel.field.get("max", max(values))
    high = high if high > low else low + 1.0

    def y(value: float) -> float:
        return TOP + DOWN * float((high - value) / (high - low))

    yield from panel.ticks()
    for tick in range(TICKS + 1):
        value = low + (high - low) * tick / TICKS
        yield line(LEFT, y(value), LEFT + ACROSS, y(value), "grid")
        yield text(LEFT - 4, y(value) + 4, formatted(value, panel.field["unit"]), "small", "end")
    for step in panel.steps:
        if step["value"] is not None and low < step["value"] <= high:
            style = f"stroke:{NAMED[step['color']]};stroke-dasharray:5 4"
            yield line(LEFT, y(step["value"]), LEFT + ACROSS, y(step["value"]), "", style)
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        for run in _runs(one, panel.step_s):
            dots = " ".join(f"{panel.x(at):.0f},{y(value):.1f}" for at, value in run)
            yield f'<polyline points="{dots}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-linecap="round"/>'
    yield from _legend([one.legend for one in series])


def _runs(series: Series, step_s: float) -> Iterator[list[tuple[float, float]]]:
    """Yield points that follow one another."""
    run: list[tuple[float, float]] = []
    for at, value in series.points:
        if run and (at - run[-1][0] > step_s or not math.isfinite(value)):
            yield run
            run = []
        if math.isfinite(value):
            run.append((at, value))
    yield run


def _legend(names: Sequence[str]) -> Iterator[str]:
    x, y = 10.0, HEIGHT - BOTTOM + 30.0
    for number, name in enumerate(names[:LEGENDS]):
        shown = name if len(name) <= LEGEND_CHARS else f"{name[: LEGEND_CHARS - 1]}…"
        width = 22 + 6.2 * len(shown)
        if x + width > WIDTH and x > 10:
            x, y = 10.0, y + 13
        yield box(x, y - 6, 10, 3, COLOURS[number % len(COLOURS)])
        yield text(x + 14, y, shown, "small")
        x += width
    if len(names) > LEGENDS:
        yield text(WIDTH - 8, HEIGHT - 4, f"and {len(names) - LEGENDS} more", "small", "end")


def _stat(panel: Panel, series: Sequence[Series]) -> Iterator[str]:
    """The last value of each, in the colour of its threshold."""
    width = WIDTH / min(len(series), STATS)
    for number, one in enumerate(series[:STATS]):
        x = width * (number + 0.5)
        yield text(
            x, 105, panel.text(one.last), "", "middle", f"font-size:34px;fill:{panel.colour(one.last)}"
        )
        yield text(x, 132, one.legend, "", "middle")


def _table(panel: Panel, series: Sequence[Series]) -> Iterator[str]:
    """The last value of each, with its labels as columns."""
    cells = [{**one.labels, "Value": panel.text(one.last)} for one in series]
    columns = [
        name for name in dict.fromkeys(name for row in cells for name in row) if name not in panel.hidden
    ]
    rows = [[row.get(name, "") for name in columns] for row in cells]
    weights = [max(len(name), *(len(row[place]) for row in rows)) + 3 for place, name in enumerate(columns)]
    starts = [10 + 6.2 * sum(weights[:place]) for place in range(len(columns))]
    for number, row in enumerate([columns, *rows[:LINES]]):
        for x, word in zip(starts, row, strict=True):
            yield text(x, TOP + 14 + 14 * number, word, "small" if number else "head")
    if len(rows) > LINES:
        yield text(WIDTH - 8, HEIGHT - 4, f"and {len(rows) - LINES} more", "small", "end")


def _states(panel: Panel, series: Sequence[Series]) -> Iterator[str]:
    """A bar for each series, in the colours of its values."""
    yield from panel.ticks()
    height = min(DOWN / len(series), 36)
    for row, one in enumerate(series):
        y, width = TOP + row * height, panel.x(panel.step_s) - panel.x(0)
        for at, value in one.points:
            yield box(panel.x(at), y + 2, width + 0.5, height - 4, panel.colour(value))
        yield text(LEFT + 6, y + height / 2 + 4, one.legend, "dark")
    for number, value in enumerate(sorted({value for one in series for _, value in one.points})):
        yield box(10 + number * 110, HEIGHT - 22, 10, 10, panel.colour(value))
        yield text(24 + number * 110, HEIGHT - 13, panel.text(value), "small")


def _heatmap(panel: Panel, series: Sequence[Series]) -> Iterator[str]:
    """How many series are in a bucket of value and time."""
    points = [(panel.x(at), value) for one in series for at, value in one.points if math.isfinite(value)]
    high = max((value for _, value in points), default=1.0) or 1.0
    counts: dict[tuple[int, int], int] = {}
    for x, value in points:
        cell = min(int((x - LEFT) / ACROSS * CELLS), CELLS - 1), min(int(value / high * BUCKETS), BUCKETS - 1)
        counts[cell] = counts.get(cell, 0) + 1
    yield from panel.ticks()
    width, height = ACROSS / CELLS, DOWN / BUCKETS
    for (column, row), count in counts.items():
        opacity = 0.15 + 0.85 * count / max(counts.values())
        yield box(LEFT + column * width, TOP + DOWN - (row + 1) * height, width, height, "#ff9830", opacity)
    for tick in range(TICKS + 1):
        y = TOP + DOWN * (1 - tick / TICKS)
        yield text(LEFT - 4, y + 4, formatted(high * tick / TICKS, panel.field["unit"]), "small", "end")


DRAWN: Final[Mapping[str, Callable[[Panel, Sequence[Series]], Iterator[str]]]] = {
    "timeseries": _lines,
    "stat": _stat,
    "table": _table,
    "state-timeline": _states,
    "heatmap": _heatmap,
}
