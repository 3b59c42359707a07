"""Care of the tables from the command line: no Java is started for it, and what is wrong is one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from redis import Redis
from typer.testing import CliRunner, Result

from mqnamesrv.store import EmbeddedStore
from mqpipeline.cli.app import app
from mqpipeline.lake.log import LOG
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from tests.mqpipeline.landing.streams import INC, STREAM, emit

WITHOUT_JAVA = {"PATH": "/nonexistent", "JAVA_HOME": "/nonexistent"}


@pytest.fixture(autouse=True)
def no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDIS_URL", "MQNS_PIPELINE_URL", "MQNS_PIPELINE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root(spark: SparkSession, redis: Redis, store: EmbeddedStore, tmp_path: Path) -> Path:
    """Two landed batches."""
    landing = Landing(spark, str(tmp_path), EVENTS_LAND, {"url": store.url}, consumer="pipeline:main")
    for first in (1, 3):
        emit(redis, first, first + 1)
        landing.land_available()
    landing.close()
    return tmp_path


def invoked(*arguments: str, answers: str | None = None) -> Result:
    return CliRunner().invoke(app, [*arguments], input=answers)


def lose_log(root: Path) -> None:
    shutil.rmtree(root / "events" / LOG)


def test_check_says_what_it_checked(root: Path, store: EmbeddedStore, redis: Redis) -> None:
    ended = invoked("check", "-w", str(root), "--url", store.url)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "heartbeats: nothing has landed",
        "in order: events (4 entries), heartbeats (0 entries): logs, files, numbers of entries, positions; "
        "derived tables: files",
    ]
    redis.delete(STREAM)
    emit(redis, 1, 1)
    ended = invoked("check", "-w", str(root), "--url", store.url)
    assert (ended.exit_code, ended.stdout.count("a primary was lost")) == (1, 1)


def test_check_without_its_store_says_so(root: Path) -> None:
    ended = invoked("check", "-w", str(root), "--url", "redis://127.0.0.1:1")
    assert ended.exit_code == 1
    assert "events: not checked against the streams, for Redis does not answer" in ended.stdout


def test_check_says_what_is_wrong(root: Path) -> None:
    lose_log(root)
    ended = invoked("check", "-w", str(root))
    assert ended.exit_code == 1
    assert "events has files and no log. Run `mqpipeline repair`" in ended.stdout


def test_repair_asks(root: Path) -> None:
    assert invoked("repair", "-w", str(root)).stdout.splitlines() == [
        "events: the log is in order",
        "heartbeats: the log is in order",
        "derived tables: their files are in order",
    ]
    lose_log(root)
    refused = invoked("repair", "-w", str(root), answers="\n")
    assert "Repair events? [y/N]" in refused.stdout
    assert "events: nothing is done" in refused.stdout
    assert not (root / "events" / LOG).exists()
    done = invoked("repair", "-w", str(root), answers="y\n")
    assert "2 files with 4 entries come in" in done.stdout
    assert f"{STREAM} has landed up to {INC + 4}-0" in done.stdout
    assert "events: done" in done.stdout
    assert invoked("check", "-w", str(root)).exit_code == 0


def test_compact_and_vacuum(root: Path) -> None:
    assert invoked("compact", "-w", str(root)).stdout == "events: 1 fewer files\n"
    assert invoked("vacuum", "-w", str(root)).stdout == "events: 0 files are deleted\n"
    assert len(list(root.glob("events/day=*/*"))) == 3
    lose_log(root)
    ended = invoked("compact", "-w", str(root))
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1)
    assert "mqpipeline repair" in ended.stderr


@pytest.mark.parametrize("command", ["check", "repair", "migrate", "compact", "vacuum"])
def test_wrong_usage_is_one_line(command: str, tmp_path: Path) -> None:
    for arguments, says in ((["-w", f"{tmp_path}/50%"], "a path with %"), ([], "WAREHOUSE is not set")):
        ended = invoked(command, *arguments)
        assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
        assert says in ended.stderr


@pytest.mark.parametrize("command", ["check", "repair", "migrate", "compact", "vacuum"])
def test_no_java_is_started(command: str, root: Path) -> None:
    if command == "repair":
        lose_log(root)
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "mqpipeline.cli",
            command,
            "-w",
            str(root),
            *(["-y"] if command == "repair" else []),
        ],
        env={**os.environ, **WITHOUT_JAVA},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("url", "code", "said"), [("redis://127.0.0.1:1", 1, "Connection refused"), ("foo://x", 2, "redis://")]
)
def test_a_sample_that_cannot_be_written_says_why_in_a_line(url: str, code: int, said: str) -> None:
    ended = invoked("sample", "--url", url)
    assert (ended.exit_code, ended.stdout) == (code, "")
    assert ended.stderr.startswith("mqpipeline: ")
    assert (said in ended.stderr, ended.stderr.count("\n")) == (True, 1)


def test_a_sample_needs_no_java_and_goes_into_no_history(store: EmbeddedStore, redis: Redis) -> None:
    command = [sys.executable, "-m", "mqpipeline.cli", "sample", "--url", store.url, "--weeks", "2"]
    first, second = (
        subprocess.run(
            command, env={**os.environ, **WITHOUT_JAVA}, capture_output=True, text=True, check=False
        )
        for _ in range(2)
    )
    count = redis.xlen("ns:{sample}:events")
    said = f"{count} events are in ns:{{sample}}:events; for reports: mqpipeline run --url … -w … --namespace sample\n"
    assert (first.returncode, first.stdout, first.stderr) == (0, said, "")
    assert count > 100
    assert (second.returncode, second.stderr.count("\n")) == (2, 1)
    assert redis.xlen("ns:{sample}:events") == count


@pytest.mark.parametrize("command", ["compact", "vacuum", "check", "repair", "migrate"])
def test_a_folder_that_is_not_there_is_one_line(command: str, tmp_path: Path) -> None:
    ended = invoked(command, "-w", f"{tmp_path}/typo")
    assert (ended.exit_code, ended.stdout) == (1, "")
    said = f"mqpipeline: {tmp_path}/typo is no folder: see its path, or fill it with `mqpipeline run`\n"
    assert ended.stderr == said


def test_a_lost_file_ends_compact_in_one_line(root: Path) -> None:
    min(root.glob("events/day=*/*")).unlink()
    ended = invoked("compact", "-w", str(root))
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1)


def test_repair_knows_what_was_acknowledged(root: Path, store: EmbeddedStore, redis: Redis) -> None:
    redis.xtrim(STREAM, maxlen=0, approximate=False)
    max((root / "events" / LOG).glob("*.json")).unlink()
    checked = invoked("check", "-w", str(root), "--url", store.url)
    assert (checked.exit_code, checked.stdout.count(" was acknowledged, and ")) == (1, 1)
    assert "events: the log is in order" in invoked("repair", "-w", str(root), "-y").stdout
    done = invoked("repair", "-w", str(root), "-y", "--url", store.url)
    assert "1 files with 2 entries come in" in done.stdout
    refused = invoked("repair", "-w", str(root), "-y", "--url", "redis://127.0.0.1:1")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
