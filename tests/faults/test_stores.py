"""Rows of the fault table in which Redis fails."""

from pathlib import Path

import pytest

from tests.faults.subset import TIMEOUT_S, broken

pytestmark = [pytest.mark.timeout(TIMEOUT_S), pytest.mark.needs("redis-server")]


@pytest.mark.parametrize(
    "name", ["redis-kill", "redis-stop", "redis-empty", "redis-full", "redis-stop-worker-enforced"]
)
def test_rows(name: str, tmp_path: Path) -> None:
    assert broken(name, tmp_path) == ()
