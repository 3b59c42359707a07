"""Wheels of this tree, built once, and a folder that holds other people's packages."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("mqns", "mqpipeline", "pyspark_redis_stream", "redis_namesrv")
FOREIGN_PACKAGES = (
    "client",
    "pipeline",
    "api",
    "worker",
    "registry",
    "remoting",
    "launcher",
    "lua",
    "metrics",
    "traces",
)
BUILD_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Building and starting Spark take a while."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(BUILD_S))


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Distribution -> its wheel, as `make wheel` builds it."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run([ROOT / "tools" / "wheels.sh", sys.executable, folder], check=True)
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose packages and wsgi.py are named as ours are or were; each ends the process that imports it."""
    folder = tmp_path_factory.mktemp("foreign")
    files = [folder / name / "__init__.py" for name in FOREIGN_PACKAGES]
    for file in (*files, folder / "wsgi.py"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("raise SystemExit(f'{__file__} was imported')\n")
    return folder
