"""Programs that tests need: where one is absent, its tests are skipped, and the last lines of the run say so.

A pytest plugin. `tools/provision.sh` has the table of programs; `--no-skips` makes a run fail that skipped anything."""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

PROVISION = Path(__file__).parents[1] / "tools" / "provision.sh"
REASON = "needs {}"
_NEEDED = re.compile(r"Skipped: needs ([\w-]+)")


def need(name: str) -> None:
    """Skip the running test if a program of the table is absent; ValueError for one that it does not have."""
    if not _provided(name):
        raise ValueError(f"no such program: {name}")
    if name in absent():
        skip(name)


def _provided(name: str) -> bool:
    return f"\n{name} : " in PROVISION.read_text()


def skip(name: str) -> None:
    """Skip the running test for want of `name`."""
    pytest.skip(REASON.format(name))


@cache
def absent() -> frozenset[str]:
    """Return the programs of the table that this machine does not have."""
    listed = subprocess.run([PROVISION, "--absent"], capture_output=True, text=True, check=True)
    return frozenset(listed.stdout.split())


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `needs`."""
    config.addinivalue_line("markers", "needs(*names): programs of tools/provision.sh; skipped without them")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with the marker `needs` of an absent program."""
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            need(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--no-skips`."""
    parser.addoption("--no-skips", action="store_true", help="fail if any test was skipped")


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print the last lines: number of skipped tests, the program, the command that installs it."""
    for name, number in sorted(_skipped(terminalreporter).items()):
        remedy = f"; as root or with sudo: tools/provision.sh {name}" if _provided(name) else ""
        terminalreporter.write_line(f"{number} skipped for want of {name}{remedy}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with `--no-skips` that skipped anything."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and session.config.getoption("--no-skips") and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skipped(reporter: TerminalReporter) -> Counter[str]:
    needed = (_NEEDED.search(str(report.longrepr)) for report in reporter.stats.get("skipped", ()))
    return Counter(match[1] if match else "another reason" for match in needed)
