"""Log lines of the pipeline's commands: the same objects as the name server's."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqpipeline.cli.log_lines import JsonLine
from mqpipeline.options import OptionError, load
from worker.logs import log_lines

MEMBERS = ["time", "process", "namespace", "level", "logger", "message"]
JAVA = """
import sys
from mqpipeline.options import load
from mqpipeline.session import spark_session, with_logging
from mqpipeline import lean
options = load({"MQNS_PIPELINE_WAREHOUSE": "/w", "MQNS_PIPELINE_LOG_FORMAT": "json", "MQNS_PIPELINE_NAMESPACES": "a,b"})
with spark_session("test", own=with_logging(lean.LEAN, options)) as spark:
    log = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("some.Logger")
    log.error('"quoted"\\n\\x1b[2J')
    log.error("failed", spark._jvm.java.lang.IllegalStateException("why"))
"""


def _command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], **variables}
    argv = [sys.executable, "-m", "mqpipeline.cli", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)


def _records() -> list[logging.LogRecord]:
    try:
        raise ValueError("why")
    except ValueError as error:
        info = type(error), error, error.__traceback__
    return [
        logging.LogRecord(
            "mqpipeline.job", logging.INFO, "job.py", 1, "landed %d of %s", (3, "ü\n\x1b"), None
        ),
        logging.LogRecord("mqpipeline.job", logging.ERROR, "job.py", 1, "failed", None, info),
    ]


@pytest.mark.parametrize("record", _records(), ids=["plain", "with a traceback"])
def test_the_objects_are_the_name_server_s(record: logging.LogRecord) -> None:
    assert JsonLine("n").format(record) == log_lines.JsonLine("n").format(record)


@pytest.mark.parametrize(
    ("command", "flag", "variables"),
    [
        ("run", ("--log-format", "json"), {}),
        ("stream", ("--log-format", "json"), {"MQNS_PIPELINE_LOG_FORMAT": "text"}),
        ("run", (), {"MQNS_PIPELINE_LOG_FORMAT": "json"}),
    ],
)
def test_lines_and_the_last_one_are_objects(
    tmp_path: Path, command: str, flag: tuple[str, ...], variables: dict[str, str]
) -> None:
    away = "--url", "redis://127.0.0.1:1", "-w", str(tmp_path), "--namespace", "a,b"
    ended = _command(command, *away, *flag, **variables)
    warning, last = map(json.loads, ended.stderr.splitlines())
    assert (ended.returncode, list(last), list(warning)) == (1, MEMBERS, MEMBERS)
    assert (warning["level"], warning["logger"]) == ("WARNING", "pyspark_redis_stream.connection")
    assert (last["namespace"], last["level"], last["logger"]) == ("a,b", "ERROR", "mqpipeline")
    assert last["message"].startswith("the Redis of the name server does not answer: ")


def test_by_default_they_are_text(tmp_path: Path) -> None:
    ended = _command("run", "--url", "redis://127.0.0.1:1", "-w", str(tmp_path))
    warning, last = ended.stderr.splitlines()
    assert re.match(r"\[.*\] \[[0-9]+\] \[WARNING\] pyspark_redis_stream.connection Redis does not", warning)
    assert last.startswith("mqpipeline: the Redis of the name server does not answer: ")


@pytest.mark.parametrize("command", ["run", "stream", "report", "answer", "work"])
def test_another_form_is_refused(tmp_path: Path, command: str) -> None:
    ended = _command(command, "-w", str(tmp_path), "--log-format", "xml\x1b[2J")
    assert ended.returncode == 2
    assert re.match(r"mqpipeline: MQNS_PIPELINE_LOG_FORMAT=xml\\x1b\[2J: ", ended.stderr)
    with pytest.raises(OptionError, match="MQNS_PIPELINE_LOG_FORMAT=JSON"):
        load({"MQNS_PIPELINE_WAREHOUSE": "/w", "MQNS_PIPELINE_LOG_FORMAT": "JSON"})


@pytest.mark.timeout(180)
def test_java_writes_them_too() -> None:
    ended = subprocess.run([sys.executable, "-c", JAVA], capture_output=True, text=True, check=True)
    lines: list[dict[str, Any]] = [json.loads(line) for line in ended.stderr.splitlines() if line[:1] == "{"]
    quoted, failed = lines[-2:]
    assert list(quoted) == MEMBERS
    assert quoted["message"] == '"quoted"\n\x1b[2J'
    assert (quoted["namespace"], quoted["level"], quoted["logger"]) == ("a,b", "ERROR", "some.Logger")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(\+00:00|Z)", quoted["time"])
    assert int(quoted["process"])
    assert failed["traceback"].startswith("java.lang.IllegalStateException: why")
