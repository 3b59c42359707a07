"""The rules in code and those of docs/differences.md are the same."""

import re
from pathlib import Path

from tests.differential.deviations import RULES
from tests.differential.sides import JAVA_4, JAVA_5

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
ROW = re.compile(r"^\| ([^|]+) \| (both|4\.9\.7|5\.5\.0) \| (.+) \|.*\|$")
FROM = {(JAVA_4, JAVA_5): "both", (JAVA_4,): JAVA_4, (JAVA_5,): JAVA_5}


def test_the_page_and_the_code_have_the_same_rules() -> None:
    rows = [match for line in PAGE.read_text().splitlines() if (match := ROW.match(line))]
    documented = [(row[1], row[2], "(parts)" in row[3]) for row in rows]
    assert documented == [(rule.name, FROM[rule.releases], rule.parts) for rule in RULES]
