"""What can be wrong before a run begins is told in a line, and Spark is not started for it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from launcher.store import EmbeddedStore
from pipeline.cli import running
from pipeline.cli.app import app

WITH_PASSWORD = "redis://user:secret@127.0.0.1"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment without options; nothing is waited for."""
    for name in ("REDIS_URL", "MQNS_PIPELINE_URL", "MQNS_PIPELINE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(running, "AWAIT_S", 0)
    monkeypatch.setattr(running, "opened", lambda *_, **__: pytest.fail("Spark is started"))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--url", "redis://127.0.0.1:1"], 2, "MQNS_PIPELINE_WAREHOUSE is not set"),
        (["-w", "w"], 2, "REDIS_URL is not set"),
        (["-w", "w", "--url", "http://127.0.0.1"], 2, "option url: not one of redis://"),
        (["-w", "w", "--url", f"{WITH_PASSWORD}:1"], 1, "the Redis of the name server does not answer: "),
        (["-w", "w", "--url", "redis+cluster://127.0.0.1:1"], 1, "does not answer: "),
        (["-w", "w", "--url", "redis+sentinel://127.0.0.1:1/m"], 1, "does not answer: "),
    ],
    ids=["no warehouse", "no url", "no such url", "no server", "no cluster", "no sentinel"],
)
@pytest.mark.parametrize("command", ["run", "stream"])
def test_a_wrong_address_is_told_at_once(command: str, arguments: list[str], code: int, says: str) -> None:
    ended = CliRunner().invoke(app, [command, *arguments])
    assert ended.exit_code == code
    assert ended.stderr.startswith("mqpipeline: ")
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "secret" not in ended.output


def test_a_password_that_is_refused_is_told(store: EmbeddedStore, tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["run", "-w", str(tmp_path), "--url", f"{store.url}?password=secret"])
    assert ended.exit_code == 1
    assert "does not answer: " in ended.stderr
    assert "secret" not in ended.output
