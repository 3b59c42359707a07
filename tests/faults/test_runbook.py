"""The runbook has a section for each row of the fault table, and a first look in it, which the table runs."""

from faults.runbook import RUNBOOK, first_looks, named_rows
from faults.table import ROWS

TEXT = RUNBOOK.read_text()
NAMES = sorted(row.name for row in ROWS if not row.enforcement)
"""Rows with access enforced are others once more."""


def test_each_row_has_a_section() -> None:
    assert sorted(named_rows(TEXT)) == NAMES


def test_each_row_has_a_first_look_in_its_section() -> None:
    assert sorted(first_looks(TEXT)) == NAMES


def test_each_row_says_what_its_first_look_shows() -> None:
    assert sorted(row.name for row in ROWS if row.look) == NAMES


def test_no_other_section_has_one() -> None:
    headings = [line for line in TEXT.splitlines() if line.startswith("### `")]
    assert TEXT.count("**First look:**") == len(headings)


LOOK = "- **First look:** it.\n\n  ```console\n  $ look -a\n  ```\n"
COMMAND = "- **Do:** that:\n\n  ```console\n  $ not this\n  ```\n"


def test_a_first_look_is_of_all_rows_of_its_section_and_of_no_other() -> None:
    text = f"### `a`, `c`: fault\n\n{LOOK}\n### `b`: fault\n\n{COMMAND}"
    assert first_looks(text) == {"a": "look -a", "c": "look -a"}
    assert named_rows(text) == ["a", "c", "b"]
