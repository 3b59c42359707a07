"""Care of the derived tables: what is damaged is found, set aside, and computed again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mqpipeline import derived
from mqpipeline.cli.app import app
from mqpipeline.lake.log import LOG, LakeError
from mqpipeline.schemas import BROKER_SESSIONS
from mqpipeline.warehouse import OLD_SNAPSHOT, Warehouse
from tests.mqpipeline.runs import commit, found, sessions, write


@pytest.fixture(scope="module")
def two_runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What they leave."""
    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("derived")))
    for name in ("a", "b"):
        run = warehouse.begin()
        write(run, closed=sessions(warehouse, name, end_ms=1))
        commit(run)
    assert derived.check(warehouse.place).findings == []
    return Path(warehouse.root)


@pytest.fixture
def warehouse(spark: SparkSession, two_runs: Path, tmp_path: Path) -> Warehouse:
    """After two runs."""
    shutil.copytree(two_runs, tmp_path, dirs_exist_ok=True)
    return Warehouse(spark, str(tmp_path))


def lose_a_file(root: Path) -> None:
    min(root.glob("broker_sessions/part=*/*/*")).unlink()


def lose_a_log(root: Path) -> None:
    shutil.rmtree(root / "broker_sessions" / LOG)


def lose_a_table(root: Path) -> None:
    shutil.rmtree(root / "broker_sessions")


def lose_the_runs(root: Path) -> None:
    shutil.rmtree(root / "runs" / LOG)


def empty_an_entry(root: Path) -> None:
    """delta-rs takes it for a commit that changed nothing."""
    (root / "broker_sessions" / LOG / f"{2:020d}.json").write_bytes(b"")


def lose_a_run(root: Path) -> None:
    for file in root.glob("runs/*.parquet"):
        file.unlink()


def cut_a_run(root: Path) -> None:
    for file in root.glob("runs/*.parquet"):
        file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize(
    "damage",
    [lose_a_file, lose_a_log, lose_a_table, lose_the_runs, empty_an_entry, lose_a_run, cut_a_run],
)
def test_what_is_damaged_is_set_aside(warehouse: Warehouse, damage: Callable[[Path], None]) -> None:
    root = Path(warehouse.root)
    damage(root)
    assert derived.check(warehouse.place).findings
    ended = CliRunner().invoke(app, ["check", "-w", warehouse.root])
    assert ended.exit_code == 1
    files = {path.name for path in root.rglob("*.parquet")}
    ended = CliRunner().invoke(app, ["repair", "-w", warehouse.root, "--yes"])
    assert "the next run computes them again" in ended.stdout
    assert files <= {path.name for path in root.rglob("*.parquet")}
    assert warehouse.snapshot.run == 0
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "c", end_ms=1))
    commit(run)
    assert found(warehouse) == {"c"}
    assert derived.check(warehouse.place).findings == []


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def refusal(warehouse: Warehouse) -> str | None:
    """Return what a run says that cannot go on, None if it has added its row."""
    try:
        run = warehouse.begin()
        write(run, closed=sessions(warehouse, "c", end_ms=1))
        commit(run)
    except LakeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("damage", [cut, empty, Path.unlink], ids=["cut", "emptied", "removed"])
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("table", ["runs", "broker_sessions"])
def test_one_log_entry(
    warehouse: Warehouse, table: str, version: int, damage: Callable[[Path], None]
) -> None:
    """The next run goes on from a run that is whole, or says what to do; no file of rows is ever deleted."""
    root = Path(warehouse.root)
    damage(root / table / LOG / f"{version:020d}.json")
    files = {path.name for path in root.rglob("*.parquet")}
    if refused := refusal(warehouse):
        assert "`mqpipeline repair`" in refused
        ended = CliRunner().invoke(app, ["repair", "-w", warehouse.root, "--yes"])
        assert "the next run computes them again" in ended.stdout
        assert refusal(warehouse) is None
        before = set()
    else:
        before = {"a", "b"} if warehouse.snapshot.run == 3 else {"a"}
    assert files <= {path.name for path in root.rglob("*.parquet")}
    assert found(warehouse) == {"c"} | before
    empty_still = [path for path in (root / table / LOG).glob("*.json") if not path.stat().st_size]
    assert len(derived.check(warehouse.place).findings) == len(empty_still)


def test_a_lost_table_is_not_an_empty_one(warehouse: Warehouse) -> None:
    lose_a_table(Path(warehouse.root))
    with pytest.raises(LakeError, match=r"run 2 left it, and it is not there. Run `mqpipeline repair`"):
        warehouse.read(BROKER_SESSIONS)


def test_a_warehouse_of_an_older_release(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows are those of the landing: the next run computes them again."""
    part = tmp_path / "broker_sessions" / "size-0" / "run=1" / "part=closed"
    part.mkdir(parents=True)
    (part / "part-0.parquet").write_bytes(b"PAR1")
    (tmp_path / OLD_SNAPSHOT).write_text("{}")
    warehouse = Warehouse(spark, str(tmp_path))
    with pytest.raises(LakeError, match=r"is as release 0.1 wrote it. Run `mqpipeline migrate`"):
        warehouse.begin()
    ended = CliRunner().invoke(app, ["migrate", "-w", str(tmp_path)])
    assert "derived tables: they are in _release-0.1; the next run computes them again" in ended.stdout
    assert (tmp_path / "_release-0.1" / part.relative_to(tmp_path) / "part-0.parquet").exists()
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1))
    commit(run)
    assert found(warehouse) == {"a"}
    assert (
        "derived tables: there is nothing to migrate"
        in CliRunner().invoke(app, ["migrate", "-w", str(tmp_path)]).stdout
    )


@pytest.mark.parametrize("version", [1, 2])
def test_other_rows_of_the_same_number_are_damage(warehouse: Warehouse, version: int) -> None:
    """As where an entry is empty that replaced as many rows as it added: delta-rs takes it for one of no change."""
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "c", end_ms=1))
    commit(run)
    root = Path(warehouse.root)
    (root / "broker_sessions" / LOG / f"{version + 1:020d}.json").write_bytes(b"")
    with pytest.raises(LakeError, match=r"is damaged.*`mqpipeline repair`"):
        warehouse.read(BROKER_SESSIONS)
    findings = derived.check(warehouse.place).findings
    assert any("is empty. Run `mqpipeline repair`" in line for line in findings)


def test_of_several_damaged_tables_each_has_a_line(warehouse: Warehouse) -> None:
    root = Path(warehouse.root)
    for table in ("broker_sessions", "runs"):
        (root / table / LOG / f"{1:020d}.json").write_bytes(b"")
    lines = derived.check(warehouse.place).findings
    assert {line.partition(":")[0] for line in lines if "is empty" in line} == {"broker_sessions", "runs"}
