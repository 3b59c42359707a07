"""What becomes of tests whose programs are absent."""

import pytest

from testbed import needs

pytest_plugins = ["pytester"]
TESTS = """
import pytest
from testbed.needs import need

@pytest.mark.needs("curl")
def test_marked():
    raise AssertionError

def test_asking():
    need("curl")
    raise AssertionError

@pytest.mark.needs("helm")
def test_that_has_its_program():
    pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setattr(needs, "absent", lambda: frozenset({"curl"}))
    pytester.makepyfile(TESTS)
    return pytester


def test_they_are_skipped_and_listed_with_the_command_that_installs_it(run: pytest.Pytester) -> None:
    result = run.runpytest_inprocess("-p", "testbed.needs")
    result.assert_outcomes(skipped=2, passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 skipped for want of curl; as root or with sudo: tools/provision.sh curl"])


def test_a_run_that_may_not_skip_fails(run: pytest.Pytester) -> None:
    result = run.runpytest_inprocess("-p", "testbed.needs", "--no-skips")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_program_that_is_no_row_of_the_table_is_not_taken_for_present() -> None:
    with pytest.raises(ValueError, match="no such program: crul"):
        needs.need("crul")
