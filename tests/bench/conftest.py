"""The bench's programs, compiled."""

from pathlib import Path

import pytest

from bench.setting import compile_program
from testbed.needs import need


@pytest.fixture(scope="session")
def load_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("cc")
    return compile_program("load", tmp_path_factory.mktemp("load"))


@pytest.fixture(scope="session")
def impatient_load_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a load generator that waits 0.3 s, instead of 10, for replies that do not come."""
    need("cc")
    return compile_program("load", tmp_path_factory.mktemp("impatient"), "-DGRACE_S=0.3")


@pytest.fixture(scope="session")
def canned_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("cc")
    return compile_program("canned", tmp_path_factory.mktemp("canned"))
