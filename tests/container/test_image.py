"""What is in the image, what is not, and that it is the same each time."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from container.pip_conf import HEADER
from tests.container.podman import NAMESRV, PIPELINE, files_of, once, podman

ROOT = Path(__file__).parents[2]
ENVIRONMENT = "opt/redis-namesrv"
LARGEST_MB = {NAMESRV: 95, PIPELINE: 1150}
"""Of what is laid upon the base."""
TOOLS = ("cc", "gcc", "g++", "clang", "ld", "as", "make", "git", "curl", "wget")
COMMANDS = (("mqnamesrv", "--help"), ("mqns", "--help"), ("gunicorn", "--version"), ("python", "--version"))
MODULES = "worker.server, worker.jobs.rq_worker, worker.transport.epoll, api.entry, mqns.cli.main"
AGAIN = "localhost/redis-namesrv-again"
"""Name of an image that is built a second time."""


@pytest.fixture(scope="module", params=[NAMESRV, PIPELINE], ids=["namesrv", "pipeline"])
def image(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def root(image: str) -> Iterator[Path]:
    """Its files."""
    with files_of(image) as folder:
        yield folder


def regular_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            if stat.S_ISREG((status := path.lstat()).st_mode):
                yield path, status


def test_it_says_what_it_is(image: str) -> None:
    (known,) = json.loads(podman("image", "inspect", image))
    config = known["Config"]
    assert config["User"] == "10001:10001"
    assert config["StopSignal"] == "SIGTERM"
    assert "MQNS_HTTP_BIND_ADDRESS=0.0.0.0" in config["Env"]  # loopback is the container's own
    labels = config["Labels"]
    assert labels["org.opencontainers.image.version"] == version("redis-namesrv")
    assert len(labels["org.opencontainers.image.revision"]) == 40
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_nothing_in_it_gives_rights(root: Path) -> None:
    given = [path for path, status in regular_files(root) if status.st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert not given


def test_the_account_can_change_nothing_in_it(root: Path) -> None:
    places = [path for path in (root / ENVIRONMENT).rglob("*") if not path.is_symlink()]
    assert places
    assert not [path for path in places if path.lstat().st_uid or path.lstat().st_mode & stat.S_IWOTH]


def test_no_tools_and_no_caches(root: Path) -> None:
    programs = [
        root / folder / name
        for folder in ("usr/bin", "usr/local/bin", f"{ENVIRONMENT}/bin")
        for name in TOOLS
    ]
    assert not [program for program in programs if program.exists() or program.is_symlink()]
    assert not list((root / ENVIRONMENT).glob("lib/python*/site-packages/pip"))
    for folder in ("root", "home", "tmp", "src", "build", "wheels"):
        assert not (root / folder).exists() or not list((root / folder).glob("[!.]*")), folder
    assert not (root / "root/.cache").exists()


def test_nothing_of_the_building_machine_s_pip_is_in_it(root: Path) -> None:
    assert not (root / "etc/pip.conf").exists()
    searched = ["grep", "--recursive", "--files-with-matches", "--fixed-strings", "--binary-files=text"]
    grep = subprocess.run([*searched, HEADER, str(root)], capture_output=True, text=True, check=False)
    assert grep.returncode == 1, grep.stdout + grep.stderr


def test_size(image: str) -> None:
    (known,) = json.loads(podman("image", "inspect", image))
    (base,) = json.loads(podman("image", "inspect", os.environ["BASE_IMAGE"]))
    assert (known["Size"] - base["Size"]) / 1e6 <= LARGEST_MB[image]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_start_by_name(command: tuple[str, ...]) -> None:
    ended = once(NAMESRV, *command)
    assert ended.returncode == 0, ended.stderr


def test_no_module_is_compiled_at_start() -> None:
    """With a read-only root that would be done again at each start."""
    ended = once(NAMESRV, "python", "-v", "-c", f"import {MODULES}")
    assert ended.returncode == 0, ended.stderr
    objects = [line for line in ended.stderr.splitlines() if line.startswith("# code object from ")]
    assert len(objects) > 200
    assert not [line for line in objects if line.endswith(".py'") or line.endswith(".py")]


def test_a_second_build_gives_the_same_image() -> None:
    subprocess.run([ROOT / "container/build.sh", "namesrv", AGAIN], check=True, capture_output=True)
    again = f"{AGAIN}:{version('redis-namesrv')}"
    try:
        assert identity(again) == identity(NAMESRV)
    finally:
        podman("rmi", again)


def identity(image: str) -> str:
    """The digest of all that it is."""
    return podman("image", "inspect", "--format={{.Id}}", image)
