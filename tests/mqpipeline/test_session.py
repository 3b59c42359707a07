import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqpipeline import session
from mqpipeline.java import java_home


def test_a_job_runs(spark: SparkSession) -> None:
    assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45


def test_times_are_utc(spark: SparkSession) -> None:
    reported = spark.sql("select date_format(timestamp_millis(0), 'yyyy-MM-dd HH')").collect()
    assert reported[0][0] == "1970-01-01 00"


def test_an_odd_value_is_null_and_ends_no_job(spark: SparkSession) -> None:
    odd = spark.sql("select cast('many' as bigint), 9223372036854775807L + 1, 1 / 0").collect()
    assert tuple(odd[0]) == (None, -(2**63), None)


def test_no_other_machine_reaches_a_session_of_this_one(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.driver.host") in ("127.0.0.1", "localhost")


LOOKS = """
import os, stat, sys
os.umask(0)
from mqpipeline.session import spark_session
spark = spark_session("sockets", {"spark.master": "local[1]"})
assert spark.range(3).mapInArrow(lambda batches: batches, "id bigint").count() == 3
[folder] = (one for one in os.scandir(sys.argv[1]) if one.name.startswith("mqpipeline-"))
print(oct(folder.stat().st_mode & 0o777), sum(stat.S_ISSOCK(one.stat().st_mode) for one in os.scandir(folder)) > 0)
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files, of a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_sockets_to_tasks_are_out_of_reach_and_go_with_the_process(temporary: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKS, str(temporary)],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0o700", "True"]
    assert list(temporary.glob("mqpipeline-*")) == []


def test_a_folder_whose_path_is_too_long_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_folder_of_sockets", lambda: "/" + "d" * (session.FOLDER_LONGEST - 1))
    assert session._sockets()
    monkeypatch.setattr(session, "_folder_of_sockets", lambda: "/" + "d" * session.FOLDER_LONGEST)
    assert session._sockets() == {}


def test_the_java_that_is_there_is_taken(tmp_path: Path) -> None:
    assert java_home({"JAVA_HOME": "/opt/java"}, tmp_path) is None
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert java_home({"PATH": str(tmp_path)}, tmp_path) is None


NO_JAVA = {"PATH": "/no/such/folder"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "redis-namesrv-0"


def test_the_wheel_s_java_runs_from_a_folder_of_its_own(folder: Path) -> None:
    home = java_home(NO_JAVA, folder)
    assert home is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    assert java_home(NO_JAVA, folder) == home
    done = subprocess.run([f"{home}/bin/java", "-version"], capture_output=True, text=True, check=True)
    assert "version" in done.stderr


def test_a_folder_that_others_could_write_to_is_refused(folder: Path) -> None:
    program = folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    folder.chmod(0o777)
    program.write_text("#!/bin/sh\n")
    with pytest.raises(PermissionError, match="others may write to"):
        java_home(NO_JAVA, folder)
    folder.chmod(0o755)  # as earlier releases made it
    assert java_home(NO_JAVA, folder) == str(folder / "java")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert "exec" in program.read_text()


def test_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="no folder of this user"):
        java_home(NO_JAVA, folder)


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    us = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: us + 1)
    with pytest.raises(PermissionError, match="no folder of this user"):
        java_home(NO_JAVA, folder)
