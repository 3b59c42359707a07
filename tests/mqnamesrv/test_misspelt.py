"""Variables that are no option, in the environment of each process that reads options without a supervisor."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.eventually import eventually

ROOT = Path(__file__).parents[2]
SENTENCE = "the options: MQNS_LISTN_PORT is no option and has no effect; did you mean MQNS_LISTEN_PORT?"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("gunicorn", "-c", "python:mqnamesrv.gunicorn_remoting", "wsgi:app"), id="remoting"),
        pytest.param(("gunicorn", "-c", "python:mqnamesrv.gunicorn_http", "wsgi:app"), id="http"),
        pytest.param(
            ("gunicorn", "-c", "python:mqnamesrv.gunicorn_metrics", "api.exporter:app"), id="exporter"
        ),
        pytest.param(("worker.jobs.rq_worker",), id="rq worker"),
        pytest.param(("worker.jobs.scheduler",), id="scheduler"),
    ],
)
def test_a_misspelt_variable_is_logged_once(command: Sequence[str], tmp_path: Path) -> None:
    ports = {f"MQNS_{name}_PORT": "0" for name in ("LISTN", "LISTEN", "HTTP", "METRICS")}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "REDIS_URL": f"unix://{tmp_path}/none",
    } | ports
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        eventually(lambda: SENTENCE in log.read_text(), 20)
    finally:
        process.terminate()
        process.wait(20)
    assert log.read_text().count("MQNS_LISTN_PORT") == 1
