"""Writes docs/pipeline-columns.md from the schemas: `python -m tools.columns_page`."""

from pathlib import Path
from typing import Final

from mqpipeline.columns import columns, meaning
from mqpipeline.reports.catalogue import CATALOGUE
from mqpipeline.schemas import EVENTS, HEARTBEATS, Table
from mqpipeline.warehouse import DERIVED

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pipeline-columns.md"
HEAD = """\
# Columns of all tables

Every table of the warehouse and its columns, in their order. Written by `make generate` from `mqpipeline/schemas.py`,
`mqpipeline/reports/catalogue.py` and `mqpipeline/columns.py`.

Times are Unix ms of the Redis clock in UTC, durations ms; intervals are half-open, `[from_ms, to_ms)`. Keys, marked *,
identify a row. Columns in brackets are names of folders, which readers of Delta Lake see as columns too. All tables but
`events` and `heartbeats` are derived and have one more, `part`: `closed` rows stay, each run replaces the `open` ones.
How the rows come about: [tables](pipeline-tables.md), [availability](pipeline-availability.md),
[other reports](pipeline-reports.md), [landing](pipeline-source.md).
"""
TITLES: Final = {
    "events": "The landing: every entry that was read",
    "heartbeats": "Each accepted heartbeat, where the name server writes them",
    "runs": "A row a run",
    "gaps": "What is missing in the stream",
    "broker_sessions": "One stay of a member in its slot",
    "broker_versions": "What held of a broker name, from one change to the next",
    "route_versions": "What was stored of a topic on a broker, from one change to the next",
    "report_health": "What a run saw of a stream",
    **{report.table.name: report.title for report in CATALOGUE},
}


def page() -> str:
    """Return the whole page."""
    tables = (EVENTS, HEARTBEATS, *DERIVED)
    return HEAD + "".join(
        f"\n## `{table.name}`\n\n{TITLES[table.name]}.\n\n{_rows(table)}" for table in tables
    )


def _rows(table: Table) -> str:
    folders = {partition.name for partition in table.partitions}
    lines = ["| column | type | |\n|---|---|---|\n"]
    for name, kind in columns(table):
        shown = f"[`{name}`]" if name in folders else f"`{name}`{'*' if name in table.keys else ''}"
        lines.append(f"| {shown} | {kind} | {meaning(table.name, name)} |\n")
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
