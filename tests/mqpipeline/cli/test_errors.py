"""How a command ends where what is wrong is not this program: one line, with what to do."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PythonException
from redis.exceptions import ConnectionError
from typer.testing import CliRunner

from mqnamesrv.store import EmbeddedStore
from mqpipeline.cli.app import app
from mqpipeline.cli.common import errors_as_lines
from mqpipeline.cli.interrupt import INTERRUPTED

ROOT = Path(__file__).resolve().parents[3]
TRACEBACK = """An exception was thrown from the Python worker.
Traceback (most recent call last):
  File "writing.py", line 3, in write
    os.write(fd, data)
OSError: [Errno 30] Read-only file system: '/lake/events'
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(
            PermissionError(13, "Permission denied", "/x/y"), "give this user the right", id="rights"
        ),
        pytest.param(OSError(28, "No space left on device"), "make room there", id="a full disk"),
        pytest.param(DeltaError("IMDS is disabled"), "set AWS_ACCESS_KEY_ID", id="no credentials"),
        pytest.param(ConnectionError("refused"), "check REDIS_URL", id="Redis is away"),
        pytest.param(Py4JNetworkError("answer"), "MQNS_PIPELINE_MEMORY", id="Java was killed"),
        pytest.param(ConnectionRefusedError(111, "refused"), "MQNS_PIPELINE_MEMORY", id="Java is gone"),
        pytest.param(
            PythonException(TRACEBACK), "OSError: [Errno 30] Read-only", id="a task of Spark's failed"
        ),
    ],
)
def test_one_line_says_what_to_do(error: Exception, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), errors_as_lines():
        raise error
    line = capsys.readouterr().err
    assert line.startswith("mqpipeline: ")
    assert line.count("\n") == 1
    assert said in line


@pytest.mark.parametrize("command", ["run", "stream"])
def test_a_warehouse_that_cannot_be_written_is_said_before_spark_starts(
    command: str, store: EmbeddedStore, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    ended = CliRunner().invoke(app, [command, "-w", str(file / "lake"), "--url", store.url])
    assert ended.exit_code == 2
    assert f"the warehouse {file}/lake: nothing can be written there: " in ended.stderr


def test_a_scheme_that_is_none(store: EmbeddedStore) -> None:
    ended = CliRunner().invoke(app, ["run", "-w", "s4://bucket/lake", "--url", store.url])
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert "s4://bucket/lake: a folder, or one of s3://" in ended.stderr


@pytest.mark.parametrize("after_s", [0.15, 0.5, 1.0])
def test_ctrl_c_at_the_start_is_no_traceback(after_s: float, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    started = subprocess.Popen(
        [
            sys.executable,
            "-X",
            "frozen_modules=on",
            "-m",
            "mqpipeline.cli",
            "route-at",
            "T",
            "2026-01-01T00:00:00Z",
        ],
        cwd=ROOT,
        env={**os.environ, "MQNS_PIPELINE_WAREHOUSE": str(tmp_path / "lake")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after_s)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert "Traceback" not in said
    assert started.returncode in (INTERRUPTED, 1)
    assert said in ("mqpipeline: interrupted\n", said.partition("\n")[0] + "\n")
