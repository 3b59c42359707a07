"""The written rules, page and dashboard are those of the code, and name only what there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.utils import floatToGoString

from metrics.alerts import ALERTS, RECORDINGS
from metrics.catalogue import CATALOGUE
from metrics.metric import NS, Metric
from metrics.rules import written_out
from tools import alert_rules, dashboard, dashboard_panels

RUNBOOK: Final = alert_rules.ROOT / "docs" / "runbook.md"
SELECTED: Final = re.compile(r"\b(rocketmq_\w+|ns:\w+:\w+|kube_\w+|container_\w+|ALERTS)(?:\{([^}]*)\})?")
MATCHER: Final = re.compile(r'(\w+)(!~|=~|!=|=)"([^"]*)"')
BY: Final = re.compile(r"\b(?:by|on) \(([^)]*)\)")
OF_PROMETHEUS: Final = frozenset({NS, "instance", "namespace", "pod"})
BY_NAME: Final = {metric.full_name: metric for metric in CATALOGUE}
FOREIGN: Final = ("kube_", "container_", "ALERTS")
"""Names that others publish."""


def expressions() -> Iterator[str]:
    yield from (written_out(rule.expression) for rule in RECORDINGS)
    yield from (written_out(alert.expression) for alert in ALERTS)
    for row in dashboard_panels.ROWS:
        for panel in row.panels:
            for query in panel.queries:
                yield written_out(query.expression)
    for _, _, expression, _ in dashboard_panels.ANNOTATIONS:
        yield written_out(expression)


def metric_of(name: str) -> Metric | None:
    family = re.sub("_(bucket|count|sum)$", "", name)
    metric = BY_NAME.get(name) or BY_NAME.get(family)
    assert metric is None or (metric.type == "histogram") == (metric.full_name != name), name
    return metric


def labels_of(name: str) -> set[str]:
    """Return the labels that a name may be asked for by."""
    if name.startswith(FOREIGN):
        return {"container", "alertname", "alertstate"}
    if name.startswith("ns:"):
        assert name in {rule.name for rule in RECORDINGS}
        return set()
    metric = metric_of(name)
    assert metric is not None, f"no metric has the name {name}"
    return {*metric.label_names, *(("le",) if name.endswith("_bucket") else ())}


def values_of(name: str, label: str) -> tuple[str, ...]:
    """Return the values that a closed label can have, none for an open one."""
    metric = None if name.startswith(FOREIGN) else metric_of(name)
    if metric is None:
        return ()
    if label == "le":
        return tuple(map(floatToGoString, metric.buckets))
    return next((one.values for one in metric.labels if one.name == label), ())


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_an_expression_names_what_there_is(expression: str) -> None:
    known = set(OF_PROMETHEUS)
    for name, matchers in SELECTED.findall(expression):
        labels = labels_of(name)
        known |= labels
        for label, _, wanted in MATCHER.findall(matchers):
            assert label in labels | OF_PROMETHEUS, f"{name} has no label {label}"
            if values := values_of(name, label):
                assert any(re.fullmatch(wanted, value) for value in values) or "$" in wanted
                assert all("*" in one or one in values for one in wanted.split("|") if "$" not in one), wanted
    for listed in BY.findall(expression):
        assert set(filter(None, listed.split(", "))) <= known, listed


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (alert_rules.RULES, alert_rules.rules()),
        (alert_rules.PAGE, alert_rules.page()),
        (dashboard.FILE, dashboard.dashboard()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_file_is_the_code(file: Path, text: str) -> None:
    assert file.read_text() == text, "run: make generate"


def test_each_alert_has_a_section_of_the_runbook() -> None:
    headings = {line.lstrip("# ") for line in RUNBOOK.read_text().splitlines() if line.startswith("##")}
    assert {alert.section for alert in ALERTS} - headings == set()


def test_labels_that_an_alert_shows_are_there() -> None:
    """The description of an alert has the labels of its series."""
    for alert in ALERTS:
        for grouped in BY.findall(alert.expression):
            assert set(grouped.split(", ")) >= {NS}, alert.name
        if "by (" in alert.expression:
            assert any(set(alert.by) <= set(one.split(", ")) for one in BY.findall(alert.expression)), (
                alert.name
            )
