"""The runbook has a word on each row of the fault table."""

import re
from pathlib import Path

from faults.table import ROWS

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "runbook.md"


def test_each_row_has_a_section() -> None:
    headings = [line for line in RUNBOOK.read_text().splitlines() if line.startswith("### ")]
    named = [name for heading in headings for name in re.findall(r"`([^`]+)`", heading)]
    assert sorted(named) == sorted(row.name for row in ROWS)
