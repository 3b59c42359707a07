"""Whose jobs are done is known before it is begun."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqpipeline import scheduled
from mqpipeline.cli import common
from mqpipeline.cli.app import app


@pytest.mark.parametrize("command", ["answer", "work"])
@pytest.mark.parametrize("namespaces", ["*", "a,*"])
def test_a_queue_belongs_to_a_namespace(
    command: str, namespaces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "opened", lambda *_, **__: pytest.fail("Spark is started"))
    monkeypatch.setattr(scheduled, "work", lambda *_, **__: pytest.fail("it waits for jobs"))
    environment = {"MQNS_PIPELINE_NAMESPACES": namespaces, "REDIS_URL": "redis://127.0.0.1:1"}
    ended = CliRunner().invoke(app, [command, "-w", str(tmp_path)], env=environment)
    assert ended.exit_code == 2
    assert ended.stderr == "mqpipeline: MQNS_PIPELINE_NAMESPACES: * has no job queue; name each of them\n"
