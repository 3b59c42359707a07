"""Prints the reports that have a key, as the HTTP API reads them, which runs without this package:
`python -m mqpipeline.reports.views > api/report_views.json`."""

import msgspec

from mqpipeline.columns import meaning
from mqpipeline.reports.catalogue import CATALOGUE, Report


def view(report: Report) -> dict[str, object]:
    """Return what api/report_views.py describes of a report; `{window}` in its key stands for a window."""
    return {
        "name": report.name,
        "title": report.title,
        "about": report.about,
        "key": report.key("{window}"),
        "stored": report.stored.name.lower() if report.stored else "",
        "order": report.order,
        "unit": report.unit,
        "columns": tuple(
            (*column, meaning(report.table.name, column.name)) for column in report.own_columns()
        ),
    }


def text() -> str:
    """Return the file."""
    views = [view(report) for report in CATALOGUE if report.stored]
    return msgspec.json.format(msgspec.json.encode(views)).decode() + "\n"


if __name__ == "__main__":
    print(text(), end="")
