"""Ctrl-C, which reaches Java and all else in the terminal too, ends commands in order and in a line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis as redis_py

from launcher.store import EmbeddedStore
from tests.pipeline import worked_example

BEGINS_WITHIN_S = 60


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("command", "begun", "code", "says"),
    [
        ("run", "reading all that was landed", 130, ["mqpipeline: interrupted"]),
        ("stream", "reading all that was landed", 0, []),
    ],
    ids=["a run", "a stream"],
)
def test_interrupted(
    command: str,
    begun: str,
    code: int,
    says: list[str],
    store: EmbeddedStore,
    redis: redis_py.Redis,
    tmp_path: Path,
) -> None:
    for entry_id, fields in worked_example.RAW:
        redis.xadd("ns:{default}:events", fields, id=entry_id)
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", command, "--url", store.url, "-w", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        assert any(begun in line for line in process.stderr)
        os.killpg(process.pid, signal.SIGINT)
        _, rest = process.communicate(timeout=BEGINS_WITHIN_S)
    finally:
        process.kill()
    assert process.returncode == code
    assert [line for line in rest.splitlines() if not line[:2].isdigit()] == says
