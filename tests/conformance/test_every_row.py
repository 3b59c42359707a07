"""The table of docs/conformance.md and the tests name the same rows."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "conformance.md"
ROW = re.compile(r"\| ([0-9A-Z]+)-(\d\d) \| `([*45OD])` \| ")
GROUPS = re.compile(r"^\*\*Groups\.\*\* (.+)\. (\d+) rows\.$", re.M)


def rows() -> list[tuple[str, str]]:
    """(id, profile) of each row, in order."""
    matches = map(ROW.match, TABLE.read_text().splitlines())
    return [(f"{match[1]}-{match[2]}", match[3]) for match in matches if match]


@cache
def proven() -> Counter[str]:
    """How often each id stands in a `conformance` mark of any test."""
    ids: Counter[str] = Counter()
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr != "conformance":
                    continue
                ids.update(str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))
    return ids


def to_prove() -> list[str]:
    return [row for row, profile in rows() if profile != "4"]


def test_each_line_of_a_table_is_a_row() -> None:
    """One that is written otherwise would be no row, and nothing would miss its test."""
    lines = [line for line in TABLE.read_text().splitlines() if re.match(r"\| *[0-9A-Za-z]+-\d+ *\|", line)]
    assert [line for line in lines if not ROW.match(line)] == []


def test_each_id_is_there_once() -> None:
    ids = [row for row, _ in rows()]
    assert len(ids) == len(set(ids))


def test_the_page_names_its_groups_and_how_many_rows_each_has() -> None:
    text = TABLE.read_text()
    said = GROUPS.search(text)
    assert said
    sections = [section.splitlines() for section in text.split("\n## ")[1:]]
    groups = [f"{title} ({sum(1 for line in lines if ROW.match(line))})" for title, *lines in sections]
    assert said[1].split(" · ") == groups
    assert int(said[2]) == len(rows())


@pytest.mark.parametrize("group", sorted({row.split("-")[0] for row in to_prove()}))
def test_every_row_has_a_test(group: str) -> None:
    have = proven()
    assert [row for row in to_prove() if row.startswith(f"{group}-") and not have[row]] == []


def test_every_mark_names_a_row() -> None:
    assert set(proven()) <= {row for row, _ in rows()}
