"""The catalogue of reports: what follows from a row fits the row."""

from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from mqpipeline.reports import views
from mqpipeline.reports.catalogue import CATALOGUE, CHURN, FLAP, SLO, Column, Report
from mqpipeline.reports.inputs import Inputs
from mqpipeline.serving.page import render
from tests.mqpipeline.serving.example import columns

ROOT = Path(__file__).parents[3]
each = pytest.mark.parametrize("report", CATALOGUE, ids=lambda report: report.name)


@each
def test_a_step_asks_for_inputs_that_there_are(report: Report) -> None:
    step = getattr(import_module(f"mqpipeline.reports.{report.name}"), report.name)
    assert set(signature(step).parameters) <= set(Inputs._fields)


@each
def test_every_column_is_read_from_the_ddl(report: Report) -> None:
    own = [column.name for column in report.own_columns()]
    table = columns(report.table)
    assert own == [name for name in table if name in own]
    assert len(table) == len(own) + (7 if report.windowed else 1)
    assert report.order_column in own
    assert "null" not in report.table.columns


@each
def test_the_documentation_has_a_section_of_the_report(report: Report) -> None:
    pages = (ROOT / "docs" / f"pipeline-{name}.md" for name in ("reports", "availability"))
    assert any(f"`{report.table.name}`" in page.read_text() for page in pages)


def test_every_section_of_the_page_has_a_template_and_an_anchor_of_its_own() -> None:
    templates = Path(render.__file__).parent / "templates"
    sections = [(report.name, report.section) for report in CATALOGUE if report.section]
    for name, section in sections:
        assert f'id="{section.anchor}"' in (templates / f"{name}.html").read_text()
    assert len({section.anchor for _, section in sections}) == len(sections)


def test_types_and_nulls_of_columns() -> None:
    found = list(SLO.own_columns())
    assert found[0] == Column("slo", "double", nullable=False)
    assert found[-2:] == [
        Column("burn", "map<string, double>", True),
        Column("alerts", "array<string>", True),
    ]


def test_keys_of_reports() -> None:
    assert (SLO.key(), FLAP.key(), CHURN.key("24h")) == ("slo", "flap:values", "churn:24h")


def test_the_views_of_the_api_are_those_of_the_catalogue() -> None:
    """If they are not: `python -m mqpipeline.reports.views > api/report_views.json`."""
    assert (ROOT / "api" / "report_views.json").read_text() == views.text()
