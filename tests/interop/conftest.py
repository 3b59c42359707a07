"""What all tests share: releases, and the name server that they are about, which may be Java's for comparison."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.rocketmq.class_data import archive
from testbed.rocketmq.enforced import OPEN, Access, enforced
from testbed.rocketmq.releases import Release, release
from testbed.rocketmq.servers import Kind, NameServer, serve
from testbed.rocketmq.stage import Stage
from tests.interop.watch import Watch

LONGEST_FIRST = (
    "test_spark_cluster.py",
    "test_master_and_slaves.py",
    "test_mqadmin.py",
    "test_acting_master.py",
    "test_messages.py",
    "test_pipeline_commands.py",
    "test_migration.py",
    "test_load_balancer.py",
    "test_mqns.py",
)
"""So that the processes of `pytest -n` end at about the same time, and frozen brokers' leases run out meanwhile."""
LAST = "test_leases.py"
"""Its test reads what has been recorded since test_master_and_slaves.py ran."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server",
        choices=("ours", "java"),
        default="ours",
        help="run everything against Java's name server instead: the suite is right when that passes",
    )


def access_of(folder: Path, way: str) -> Access:
    """Return how peers prove who they are: `open`, not at all, or `enforced`."""
    return enforced(folder / "access") if way == "enforced" else OPEN


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have tests that are marked `twice` run with access enforced too, all others that use a stage without. Java's
    name server enforces nothing."""
    if "stage" in metafunc.fixturenames:
        is_twice = (
            metafunc.definition.get_closest_marker("twice")
            and metafunc.config.getoption("--server") == "ours"
        )
        ways = ["open", "enforced"] if is_twice else ["open"]
        metafunc.parametrize("stage", ways, indirect=True, scope="module")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place - len(LONGEST_FIRST) for place, name in enumerate(LONGEST_FIRST)} | {LAST: 1}
    items.sort(key=lambda item: places.get(item.path.name, 0))


@pytest.fixture(scope="session")
def kind(pytestconfig: pytest.Config) -> Kind:
    """Whose name server is tested."""
    chosen: Kind = pytestconfig.getoption("--server", "ours")
    return chosen


@pytest.fixture(scope="session", autouse=True)
def archives() -> None:
    """Some hundred Java processes start sooner."""
    for version in ("4.9.7", "5.5.0"):
        archive(release(version))


@pytest.fixture(scope="session")
def release_5() -> Release:
    return release("5.5.0")


@pytest.fixture(scope="session")
def release_4() -> Release:
    return release("4.9.7")


@pytest.fixture(scope="session")
def session_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """For what all tests share."""
    with Stage(tmp_path_factory.mktemp("session")) as stage:
        yield stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """For what the tests of one module share, with access enforced or not."""
    folder = tmp_path_factory.mktemp(Path(request.path).stem)
    with Stage(folder, access_of(folder, request.param)) as stage:
        yield stage


@pytest.fixture(scope="session")
def enforced_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """As `session_stage`, with access enforced."""
    folder = tmp_path_factory.mktemp("enforced-session")
    with Stage(folder, access_of(folder, "enforced")) as stage:
        yield stage


@pytest.fixture(scope="session")
def enforced_server(enforced_stage: Stage) -> NameServer:
    """As `server`, with access enforced; always ours."""
    return serve(enforced_stage, "ours")


@pytest.fixture(scope="session")
def server(session_stage: Stage, kind: Kind) -> NameServer:
    """A name server as it comes, for all tests that need no special one."""
    return serve(session_stage, kind)


@pytest.fixture(scope="session")
def watches() -> dict[str, Watch]:
    """Of frozen brokers, by broker name; kept to the end of the session."""
    return {}
