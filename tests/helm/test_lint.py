"""`helm lint` and `helm package` of the chart."""

from tests.helm.cases import CASES
from tests.helm.chart import CHART, helm


def test_lint_finds_nothing() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_it_can_be_packed(tmp_path: object) -> None:
    assert "Successfully packaged" in helm("package", str(CHART), "-d", str(tmp_path))


def test_the_cases_are_as_many_as_they_should() -> None:
    assert len(CASES) > 50
