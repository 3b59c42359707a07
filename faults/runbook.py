"""The first looks that docs/runbook.md names: a command in the section of each row of the fault table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

RUNBOOK: Final = Path(__file__).resolve().parent.parent / "docs" / "runbook.md"
SECTION: Final = re.compile(r"^### (?P<heading>.*)\n(?P<text>(?:(?!##).*\n)*)", re.MULTILINE)
NAME: Final = re.compile(r"`([^`]+)`")
LOOK: Final = re.compile(
    r"^- \*\*First look:\*\*.*\n(?:  .*\n|\n)*?  ```console\n  \$ (?P<command>.+)\n", re.MULTILINE
)


def named_rows(text: str) -> list[str]:
    """Return the rows that headings of the runbook name."""
    return [name for section in SECTION.finditer(text) for name in NAME.findall(section["heading"])]


def first_looks(text: str) -> dict[str, str]:
    """Return the command of the first look, by row."""
    return dict(_first_looks(text))


def _first_looks(text: str) -> Iterator[tuple[str, str]]:
    for section in SECTION.finditer(text):
        if look := LOOK.search(section["text"]):
            for name in NAME.findall(section["heading"]):
                yield name, look["command"]
