"""Questions of HTTP and of the command line, answered from the worked example as a run of the pipeline leaves it."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rq import Worker
from rq.command import send_shutdown_command
from rq.serializers import JSONSerializer
from typer.testing import CliRunner

from api.app import create_app
from api.history_queue import queue_of
from mqnamesrv.store import EmbeddedStore
from mqpipeline.cli import common
from mqpipeline.cli.app import app
from mqpipeline.history import jobs
from mqpipeline.history.reader import NothingLanded, Reader
from mqpipeline.history.worker import work
from mqpipeline.lake.place import place
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from mqpipeline.warehouse import Folded, Warehouse
from registry.options.catalogue import Options
from registry.store.connect import connect
from testbed.eventually import eventually
from tests.api.http import Http, Reply
from tests.mqpipeline.history.example import S, frames

pytestmark = pytest.mark.timeout(240)
T1 = "/v1/history/routes/T1"
PATHS = {
    "route": f"{T1}?at=1970-01-01T00:32:01Z",
    "as recorded": f"{T1}?at=1921000&asRecorded=true",
    "no broker": "/v1/history/routes/T9?at=1921000",
    "too late": f"{T1}?at=3600001",
    "diff": f"{T1}/diff?from=1910000&to=1930000",
    "first page": "/v1/history/diff?from=0&to=2750000&limit=2",
    "permissions": "/v1/history/topics/T1/permissions?limit=1",
    "before": "/v1/history/diff?from=0&to=3600001",
}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the worked example."""
    root = tmp_path_factory.mktemp("warehouse")
    sessions, names, routes = frames(spark)
    run = Warehouse(spark, str(root)).begin()
    run.write(run.plan(BROKER_SESSIONS, sessions, open="open", full=True))
    run.write(run.plan(BROKER_VERSIONS, names, open="to_ms is null", full=True))
    run.write(run.plan(ROUTE_VERSIONS, routes, open="to_ms is null", full=True))
    run.commit(as_of_ms=3600 * S, final_ms=0, folded={"default": Folded(1, 1, 1, True)})
    return root


@pytest.fixture(scope="module")
def reader(folder: Path) -> Reader:
    return Reader(place(str(folder)))


@contextmanager
def own_signals() -> Iterator[None]:
    """RQ's worker takes these for its own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture(scope="module")
def replies(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reply]:
    """name of PATHS -> what HTTP says, while a process as `mqpipeline answer` runs it answers."""
    store = EmbeddedStore(tmp_path_factory.mktemp("queue"), keep=False)
    store.start()
    http = Http(create_app(Options(redis_url=store.url), redis=connect(store.url)).test_client())
    queue = queue_of(store.url, "default", 10)

    def ask() -> dict[str, Reply]:
        workers = eventually(lambda: Worker.all(queue=queue, serializer=JSONSerializer), 120)
        try:
            return {name: http("GET", path) for name, path in PATHS.items()}
        finally:
            send_shutdown_command(queue.connection, workers[0].name)

    try:
        with own_signals(), ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask)
            work(reader, store.url, ("default",))
            return asked.result()
    finally:
        store.stop()


def brokers(reply: Reply) -> list[str]:
    assert reply.status == 200, reply
    return [data["brokerName"] for data in reply.json["route"]["queueDatas"]]


def test_a_route_of_then(replies: dict[str, Reply]) -> None:
    assert brokers(replies["route"]) == ["b", "c"]
    assert brokers(replies["as recorded"]) == ["a", "b", "c"]
    reported = replies["route"].json
    assert (reported["topic"], reported["atMillis"], reported["provisional"]) == ("T1", 1921 * S, False)
    assert reported["landed"] == {"fromMillis": -900 * S, "untilMillis": 3600 * S}
    assert reported["route"]["brokerDatas"][0] == {
        "brokerName": "b",
        "cluster": "c1",
        "brokerAddrs": {"0": "10.0.0.b:10911"},
        "enableActingMaster": False,
    }


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("no broker", "topic-not-found", "no route of topic 'T9' at 1970-01-01T00:32:01.000Z"),
        ("too late", "not-landed", "until 1970-01-01T01:00:00.000Z"),
        ("before", "not-landed", "from 1969-12-31T23:45:00.000Z"),
    ],
)
def test_what_is_not_there_is_said(replies: dict[str, Reply], name: str, kind: str, words: str) -> None:
    reply = replies[name]
    assert (reply.status, reply.json["type"]) == (404, f"urn:redis-namesrv:{kind}")
    assert words in reply.json["detail"]


def test_what_changed_and_why(replies: dict[str, Reply]) -> None:
    (change,) = replies["diff"].json["changes"]
    assert change["before"].pop("brokerAddrs") == {"0": "10.0.0.a:10911"}
    assert change == {
        "topic": "T1",
        "brokerName": "a",
        "atMillis": 1920 * S,
        "eventId": "1923400-0",
        "cause": "expired",
        "actor": None,
        "op": None,
        "change": "removed",
        "fields": [],
        "before": {
            "cluster": "c1",
            "readQueueNums": 4,
            "writeQueueNums": 4,
            "perm": 6,
            "topicSysFlag": 0,
            "enableActingMaster": False,
            "zoneName": None,
        },
        "after": None,
    }


def test_pages(replies: dict[str, Reply], reader: Reader) -> None:
    first = replies["first page"].json
    assert [(one["topic"], one["brokerName"]) for one in first["changes"]] == [("T1", "b"), ("T1", "c")]
    assert first["changes"][0]["fields"] == ["perm"]
    rest = answer(reader, "diff", from_ms=0, to_ms=2750 * S, limit=2, after=first["next"])
    assert [(one["topic"], one["brokerName"]) for one in rest["changes"]] == [("T2", "c")]
    assert rest["next"] is None


def test_the_actor_of_a_permission_change(replies: dict[str, Reply]) -> None:
    reported = replies["permissions"].json
    (newest,) = reported["changes"]
    assert (newest["cause"], newest["actor"], newest["op"]) == ("restore", "token:alice", "restoring")
    assert (newest["before"], newest["after"], reported["more"]) == (4, 6, True)


def answer(reader: Reader, question: str, **arguments: Any) -> Any:
    jobs.answer_from(reader)
    return jobs.answer(question, {"namespace": "default"} | arguments, within_s=60)


def test_a_namespace_of_which_nothing_has_landed(reader: Reader) -> None:
    assert answer(reader, "route", namespace="other", topic="T1", at_ms=0) == {
        "outside": True,
        "landed": None,
    }


def test_a_newer_snapshot_is_found(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    reader = Reader(warehouse.place)
    with pytest.raises(NothingLanded, match="default"):
        reader.reading("default")
    sessions, _, _ = frames(spark)
    for as_of_ms in (10, 20):
        run = warehouse.begin()
        run.write(run.plan(BROKER_SESSIONS, sessions.limit(1), open="open", full=True))
        run.commit(as_of_ms=as_of_ms, final_ms=0, folded={})
        assert reader.reading("default").until_ms == as_of_ms
        assert reader.reading("default") is reader.reading("default")


@pytest.fixture
def mqpipeline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command; -> exit code, standard output, standard error."""
    monkeypatch.setenv("MQNS_PIPELINE_WAREHOUSE", str(folder))

    def run(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, words)
        return result.exit_code, result.stdout, result.stderr

    return run


def test_route_at(mqpipeline: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = mqpipeline("route-at", "T1", "1970-01-01T00:32:01Z")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["CLUSTER", "BROKER", "ADDRESSES", "READ", "WRITE", "PERM"],
        ["c1", "b", "0=10.0.0.b:10911", "8", "8", "6"],
        ["c1", "c", "0=10.0.0.c:10911", "12", "12", "6"],
    ]
    code, _, err = mqpipeline("route-at", "T2", "3500000")
    assert (code, err) == (1, "mqpipeline: no route of topic 'T2' at 1970-01-01T00:58:20.000Z\n")


def test_diff(mqpipeline: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = mqpipeline("diff", "1910000", "1930000", "--topic", "T1", "--json")
    assert code == 0
    assert [(one["brokerName"], one["change"], one["cause"]) for one in json.loads(out)["changes"]] == [
        ("a", "removed", "expired")
    ]


def test_who_and_timeline(mqpipeline: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = mqpipeline("who", "T1", "--to", "2800000")
    assert code == 0
    assert out.splitlines()[1].split() == [
        *("1970-01-01T00:45:00.000Z", "T1", "b", "perm", "6", "4", "wipe", "token:alice", "wiping")
    ]
    code, out, _ = mqpipeline("timeline", "T2", "--json")
    assert [(one["what"], one["cause"]) for one in json.loads(out)["changes"]] == [
        ("member", "expired"),
        ("queues", "register"),
        ("member", "first"),
    ]


def test_a_topic_without_a_change(mqpipeline: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = mqpipeline("who", "T1", "--to", "2000000")
    assert (code, out) == (1, "")
    assert err == (
        "mqpipeline: no change of the permissions of topic 'T1' from 1969-12-31T23:45:00.000Z to "
        "1970-01-01T00:33:20.000Z\n"
    )


@pytest.mark.parametrize(
    "words",
    [("who", "T9"), ("timeline", "T9"), ("route-at", "T9", "1921000"), ("diff", "10", "20", "-t", "T9")],
)
def test_a_topic_that_never_was(
    mqpipeline: Callable[..., tuple[int, str, str]], words: tuple[str, ...]
) -> None:
    code, out, err = mqpipeline(*words)
    assert (code, out) == (1, "")
    assert err == "mqpipeline: the tables have never had a topic 'T9': see its name, and --namespace\n"


@pytest.mark.parametrize(
    ("words", "code", "reported"),
    [
        pytest.param(("diff", "10", "20", "--limit", str(10**20)), 2, "--limit", id="too many"),
        pytest.param(("route-at", "T1", "noon"), 2, "noon", id="no time"),
        pytest.param(("diff", "20", "10"), 2, "TO is before FROM", id="the wrong way round"),
        pytest.param(("route-at", "T1", "3600001"), 1, "to 1970-01-01T01:00:00.000Z", id="nothing landed"),
    ],
)
def test_refused(
    mqpipeline: Callable[..., tuple[int, str, str]], words: tuple[str, ...], code: int, reported: str
) -> None:
    found, _, err = mqpipeline(*words)
    assert found == code
    assert reported in err


def test_a_namespace_that_is_not_there(mqpipeline: Callable[..., tuple[int, str, str]]) -> None:
    code, out, error = mqpipeline("who", "T1", "--namespace", "other")
    assert (code, out) == (common.NOT_THERE, "")
    assert error.endswith(
        "has nothing of namespace 'other': land it with `mqpipeline run`, or name one that is there: default\n"
    )


def test_without_a_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQNS_PIPELINE_WAREHOUSE", raising=False)
    result = CliRunner().invoke(app, ["who", "T1"])
    assert (result.exit_code, result.stderr) == (
        common.WRONG_USAGE,
        "mqpipeline: MQNS_PIPELINE_WAREHOUSE is not set: where the tables are\n",
    )


def test_a_question_that_takes_too_long_is_given_up(reader: Reader) -> None:
    jobs.answer_from(reader)
    with pytest.raises(TimeoutError, match="takes too long"):
        jobs.answer("route", {"namespace": "default", "topic": "T1", "at_ms": 0}, within_s=0)
    assert answer(reader, "route", topic="T1", at_ms=0)["route"]


@pytest.mark.parametrize("how", ["cut off", "emptied", "gone"])
def test_a_damaged_file_is_said(
    spark: SparkSession, folder: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = shutil.copytree(folder, tmp_path / "copied")
    for file in (copied / "route_versions").rglob("*.parquet"):
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: 0 if how == "emptied" else 100])
    monkeypatch.setenv("MQNS_PIPELINE_WAREHOUSE", str(copied))
    result = CliRunner().invoke(app, ["route-at", "T1", "1921000"])
    assert result.exit_code == 1
    assert result.stderr.startswith("mqpipeline: a file of the tables cannot be read: ")
    assert result.stderr.endswith(". Run `mqpipeline check`\n")
