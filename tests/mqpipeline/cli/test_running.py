"""What can be wrong before a run begins is an error of one line, and Spark is not started for it."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from redis import Redis
from typer.testing import CliRunner

from mqnamesrv.store import EmbeddedStore
from mqpipeline import job
from mqpipeline.cli import running
from mqpipeline.cli.app import app
from mqpipeline.lean import LEAN
from mqpipeline.warehouse import Snapshot

WITH_PASSWORD = "redis://user:secret@127.0.0.1"


@pytest.fixture
def landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A warehouse in which something has landed."""
    monkeypatch.setattr(running, "opened_log", lambda *_: SimpleNamespace())
    return str(tmp_path)


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
        (["-w", "a%20b", "--url", "redis://127.0.0.1:1"], 2, "Delta Lake cannot write to a path with %"),
        (["-w", "w", "--url", "http://127.0.0.1"], 2, "option url: not one of redis://"),
        (["-w", "w", "--url", f"{WITH_PASSWORD}:1"], 1, "the Redis of the name server does not answer: "),
        (["-w", "w", "--url", "redis+cluster://127.0.0.1:1"], 1, "does not answer: "),
        (["-w", "w", "--url", "redis+sentinel://127.0.0.1:1/m"], 1, "does not answer: "),
    ],
    ids=["no warehouse", "no url", "no such folder", "no such url", "no server", "no cluster", "no sentinel"],
)
@pytest.mark.parametrize("command", ["run", "stream"])
def test_a_wrong_address_fails_at_once(command: str, arguments: list[str], code: int, says: str) -> None:
    ended = CliRunner().invoke(app, [command, *arguments])
    assert ended.exit_code == code
    assert ended.stderr.startswith("mqpipeline: ")
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "secret" not in ended.output


def test_a_refused_password_is_an_error(store: EmbeddedStore, tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["run", "-w", str(tmp_path), "--url", f"{store.url}?password=secret"])
    assert ended.exit_code == 1
    assert "does not answer: " in ended.stderr
    assert "secret" not in ended.output


def test_a_report_of_a_folder_in_which_nothing_has_landed(
    store: EmbeddedStore, redis: Redis, tmp_path: Path
) -> None:
    folder = tmp_path / "mistyped"
    ended = CliRunner().invoke(app, ["report", "-w", str(folder), "--url", store.url])
    assert (ended.exit_code, ended.stderr) == (
        1,
        f"mqpipeline: nothing has landed in {folder}: see its path, or `mqpipeline run`\n",
    )
    assert not folder.exists()
    assert redis.keys() == []


@pytest.mark.parametrize("command", ["run", "report"])
@pytest.mark.parametrize(("flags", "full"), [([], False), (["--full"], True), (["--anew"], True)])
def test_full_and_its_old_name_recompute_everything(
    command: str,
    flags: list[str],
    full: bool,
    store: EmbeddedStore,
    landed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(running, "opened", lambda *_: nullcontext(SimpleNamespace(spark=None)))

    def made(*_: object, full: bool) -> job.Outcome:
        asked.append(full)
        return job.Outcome(Snapshot(), ())

    monkeypatch.setattr(job, command, made)
    ended = CliRunner().invoke(app, [command, "-w", landed, "--url", store.url, *flags])
    assert (ended.exit_code, asked) == (0, [full])


def test_the_old_name_of_full_is_not_shown() -> None:
    assert "--anew" not in CliRunner().invoke(app, ["run", "--help"]).output


@pytest.mark.parametrize(("command", "sized"), [("run", [LEAN]), ("report", [LEAN]), ("stream", [])])
def test_single_runs_of_few_events_are_lean(
    command: str, sized: list[object], store: EmbeddedStore, landed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def opened(name: str, options: object, *sized: object) -> object:
        asked.extend(sized)
        return nullcontext(SimpleNamespace(spark=None))

    monkeypatch.setattr(running, "opened", opened)
    monkeypatch.setattr(job, command, lambda *_, **__: job.Outcome(Snapshot(), ()))
    ended = CliRunner().invoke(app, [command, "-w", landed, "--url", store.url])
    assert (ended.exit_code, asked) == (0, sized)


@pytest.mark.parametrize("command", ["run", "report"])
def test_a_namespace_that_is_missing_has_an_exit_code(
    command: str, store: EmbeddedStore, landed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "opened", lambda *_: nullcontext(SimpleNamespace(spark=None)))
    monkeypatch.setattr(job, command, lambda *_, **__: job.Outcome(Snapshot(), ("gone",)))
    ended = CliRunner().invoke(app, [command, "-w", landed, "--url", store.url])
    assert ended.exit_code == 3
