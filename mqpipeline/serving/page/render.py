"""Puts the page together: what each part shows is chosen here, how it looks is in templates/."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mqpipeline.reports.catalogue import (
    AVAILABILITY,
    CATALOGUE,
    CONFLICTS,
    DETECT,
    FLAP,
    INCIDENTS,
    REPAIR,
    ROLLING,
    SKEW,
    SLO,
    UNITS,
    Report,
)
from mqpipeline.serving.page import figures, words
from mqpipeline.serving.results import (
    BROKER_STATES,
    CHURN_HOURS,
    LONGEST_FIRST,
    STRIP_STATES,
    Results,
    Row,
    Run,
)

MOST: Final = {"clusters": 50, "cards": 6, "brokers": 30, "topics": 30, "heat": 20, "names": 12}
"""So many lines at most; the rest is counted. Those of reports: `Report.lines`."""
SKEWED_TOPICS: Final = 15
FLAP_MOST: Final = 12_000
KNOWN: Final = ("up_ms", "down_ms", "planned_ms")
NEARLY_ALL: Final = 0.95


class Cluster(msgspec.Struct, frozen=True):
    """Its row of each rolling window, and of its objective."""

    name: str
    windows: dict[str, Row]
    slo: Row | None

    @property
    def longest(self) -> Row:
        return next(self.windows[window] for window in LONGEST_FIRST if window in self.windows)

    @property
    def known_ms(self) -> float | None:
        """How much of the longest window its brokers are known, on average; None if nearly all of it."""
        row = self.longest
        known = sum(row[name] for name in KNOWN)
        share = known / (known + row["unknown_ms"])
        return None if share >= NEARLY_ALL else share * (row["to_ms"] - row["from_ms"])

    @property
    def missed(self) -> bool | None:
        """Whether it was less available than its objective wants; None if one of both is not known."""
        availability = self.longest["availability"]
        return None if self.slo is None or availability is None else bool(availability < self.slo["slo"])

    @property
    def spent(self) -> float:
        """The share of the budget that is spent, at most 1."""
        remaining = None if self.slo is None else self.slo["remaining"]
        return 0.0 if remaining is None else min(1.0, max(0.0, 1 - remaining))


class Point(msgspec.Struct, frozen=True):
    """A sentence of the summary; `level` is good, bad or note."""

    level: str
    text: str
    names: tuple[str, ...] = ()


class Listed(msgspec.Struct, frozen=True):
    """The first rows of a list, and how many more there were."""

    rows: tuple[Row, ...]
    more: int

    @classmethod
    def first(cls, most: int, *kinds: Sequence[Row]) -> "Listed":
        """Return the first rows of the kinds, one kind after the other."""
        rows = tuple(row for kind in kinds for row in kind)
        return cls(rows[:most], sum(kind[0]["of"] for kind in kinds if kind) - len(rows[:most]))

    @classmethod
    def known(cls, most: int, rows: Sequence[Row], column: str, least: float) -> "Listed":
        """Return those of rows, from high to low, that have at least so much."""
        known = tuple(row for row in rows if row[column] is not None and row[column] >= least)
        whole = rows[0]["of"] if rows and len(known) == len(rows) else len(known)
        return cls(known[:most], whole - len(known[:most]))


def html(namespace: str, run: Run, results: Results) -> str:
    """The report of a namespace, whole: nothing is loaded, no script runs."""
    page = _environment().get_template("page.html")
    return page.render(_content(namespace, run, results))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (
        words.name,
        words.unit_name,
        words.detail,
        words.share,
        words.objective,
        words.number,
        words.duration,
        words.moment,
        words.day,
        words.window,
        words.plural,
    ):
        environment.filters[function.__name__] = function
    environment.globals |= {
        "WIDTH": figures.WIDTH,
        "HEIGHT": figures.HEIGHT,
        "FLAP_MOST": FLAP_MOST,
        "STRIP_STATES": STRIP_STATES,
        "ALERTS": words.ALERTS,
        "duration_range": figures.duration_range,
        "duration_ticks": figures.duration_ticks,
    }
    return environment


def _content(namespace: str, run: Run, results: Results) -> dict[str, Any]:
    clusters = _clusters(results)
    longest, skew = results.rows(AVAILABILITY), results.rows(SKEW)
    lists = {report.name: _listed(report, results) for report in CATALOGUE}
    states = results.of(BROKER_STATES)
    brokers = _of_kind(longest, "broker")
    units = [f"cluster:{cluster.name}" for cluster in clusters] + [row["unit"] for row in brokers]
    return lists | {
        "sections": [report for report in CATALOGUE if report.section],
        "namespace": namespace,
        "run": run,
        "provisional": any(row["provisional"] for row in longest),
        "points": _points(clusters, results, run),
        "clusters": clusters[: MOST["clusters"]],
        "cards": clusters[: MOST["cards"]],
        "clusters_more": len(clusters) - MOST["clusters"],
        "rolling": [window for window in ROLLING if any(window in cluster.windows for cluster in clusters)],
        "window": longest[0]["window"] if longest else None,
        "strips": figures.strips(states, results.as_of_ms),
        "strips_more": states[0]["of"] - len({(row["cluster"], row["broker"]) for row in states})
        if states
        else 0,
        "heat": figures.heat(results.of(AVAILABILITY.table.name, "day"), units[: MOST["heat"]]),
        "brokers": Listed.first(MOST["brokers"], brokers),
        "topics": Listed.first(MOST["topics"], _of_kind(longest, "topic")),
        "detect_longest": _largest(results.rows(DETECT), "max_ms"),
        "repair_longest": _largest(results.rows(REPAIR), "p95_ms", "p90_ms", "p50_ms"),
        "flap": Listed.known(FLAP.lines, results.rows(FLAP), "score", 1),
        "hourly": figures.causes(results.of(CHURN_HOURS)),
        "skew": _of_kind(skew, "cluster")[: MOST["clusters"]],
        "skew_topics": Listed.known(SKEWED_TOPICS, _of_kind(skew, "topic"), "queues_max_to_mean", 1),
        "fallen": [_fallen(incident, states) for incident in lists[INCIDENTS.name].rows],
        "names_most": MOST["names"],
    }


def _listed(report: Report, results: Results) -> Listed:
    """Return the first rows of a report, kind after kind where each is cut by itself."""
    rows = results.rows(report)
    by_kind = "kind" in report.cut.group
    return Listed.first(report.lines, *((_of_kind(rows, kind) for kind in UNITS) if by_kind else (rows,)))


def _of_kind(rows: Iterable[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["unit"].startswith(f"{kind}:")]


def _largest(rows: Iterable[Row], *columns: str) -> float:
    return max((row[column] or 0.0 for row in rows for column in columns), default=0.0)


def _clusters(results: Results) -> list[Cluster]:
    """Those that miss their objective come first, then the least available."""
    windows: dict[str, dict[str, Row]] = {}
    for window in ROLLING:
        for row in _of_kind(results.of(AVAILABILITY.table.name, window), "cluster"):
            windows.setdefault(row["unit"].partition(":")[2], {})[window] = row
    objectives = {row["unit"].partition(":")[2]: row for row in results.rows(SLO)}
    clusters = [Cluster(name, rows, objectives.get(name)) for name, rows in windows.items()]

    def order(cluster: Cluster) -> tuple[bool, float, str]:
        availability = cluster.longest["availability"]
        return not cluster.missed, 2.0 if availability is None else availability, cluster.name

    return sorted(clusters, key=order)


def _points(clusters: Sequence[Cluster], results: Results, run: Run) -> list[Point]:
    """The report in sentences, what is bad first."""
    points = [*_of_objectives(clusters), *_of_events(results), *_of_stream(run)]
    return sorted(points, key=lambda point: ("bad", "note", "good").index(point.level))


def _of_objectives(clusters: Sequence[Cluster]) -> Iterable[Point]:
    judged = [cluster for cluster in clusters if cluster.missed is not None]
    missed = tuple(cluster.name for cluster in judged if cluster.missed)
    if missed:
        text = f"{len(missed)} of {words.plural(len(judged), 'cluster')} missed the objective:"
        yield Point("bad", text, missed)
    elif judged:
        yield Point("good", f"{words.plural(len(judged), 'cluster')} met the objective.")
    firing = tuple(cluster.name for cluster in clusters if cluster.slo and cluster.slo["alerts"])
    if firing:
        yield Point("bad", "The error budget is burning too fast, an alert fires:", firing)


def _of_events(results: Results) -> Iterable[Point]:
    flapping = tuple(words.unit_name(row["unit"]) for row in results.rows(FLAP) if row["flapping"])
    if flapping:
        yield Point("bad", "Flapping now:", flapping)
    incidents = results.rows(INCIDENTS)
    if incidents:
        latest = incidents[0]
        text = (
            f"{words.plural(max(row['of'] for row in incidents), 'incident')} on record, the last at"
            f" {words.moment(latest['start_ms'])} with {words.plural(latest['members'], 'member')} gone."
        )
        yield Point("bad" if latest["restored_ms"] is None else "note", text)
    conflicts = results.rows(CONFLICTS)
    if conflicts:
        yield Point("note", f"Brokers claimed what another had: {words.plural(len(conflicts), 'case')}.")


def _of_stream(run: Run) -> Iterable[Point]:
    if run.differing:
        yield Point("bad", "The newest checkpoint differs from the tables. Run the pipeline with --full.")
    if run.holes:
        missing = words.plural(run.holes, "entry", "entries")
        text = f"{missing} of the stream missing: time after a hole counts as unknown or down."
        yield Point("note", text)
    if run.unknown:
        text = f"{words.plural(run.unknown, 'entry', 'entries')} of kinds that this release does not know. Upgrade it."
        yield Point("note", text)
    if run.rejected:
        text = f"{words.plural(run.rejected, 'entry', 'entries')} of the stream could not be understood."
        yield Point("note", text)


def _fallen(incident: Row, states: Iterable[Row]) -> list[str]:
    """Brokers that went down in it, among those whose states are shown."""
    end = incident["end_ms"] if incident["end_ms"] is not None else incident["start_ms"]
    return [
        f"{row['cluster']}:{row['broker']}"
        for row in states
        if row["state"] == "DOWN" and incident["start_ms"] <= row["from_ms"] <= end
    ]
