"""Queries of history without the pipeline; its own tests have the replies."""

import subprocess
import sys
from types import ModuleType

import pytest
import redis as redis_py
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from api import history
from api import times as api_times
from api.app import create_app
from api.history_queue import queue_name, queue_of
from api.times import LAST_MS
from mqnamesrv.store import EmbeddedStore
from mqpipeline import times as pipeline_times
from registry.options.catalogue import Options
from testbed.eventually import eventually
from tests.api.http import Http

ROUTE = "/v1/history/routes/TopicA"


@pytest.fixture
def asking(store: EmbeddedStore, redis: redis_py.Redis) -> Http:
    """Return a client of an application whose job queue is on the store."""
    options = Options(redis_url=store.url, http_threads=2)
    return Http(create_app(options, redis=redis).test_client())


@pytest.mark.parametrize(
    ("path", "field"),
    [
        pytest.param(ROUTE, "at", id="no time"),
        pytest.param(f"{ROUTE}?at=yesterday", "at", id="no time at all"),
        pytest.param(f"{ROUTE}?at=2026-11-21T14:03:00", "at", id="no offset"),
        pytest.param(f"{ROUTE}?at=-1", "at", id="before the epoch"),
        pytest.param(f"{ROUTE}?at={LAST_MS + 1}", "at", id="after the year 9999"),
        pytest.param(f"{ROUTE}?at=1&asRecorded=perhaps", "asRecorded", id="neither true nor false"),
        pytest.param(f"{ROUTE}/diff?from=1", "to", id="no end"),
        pytest.param(f"{ROUTE}/diff?from=2&to=1", "to", id="the end before the begin"),
        pytest.param("/v1/history/diff?from=x&to=1", "from", id="all topics"),
        pytest.param("/v1/history/diff?from=1&to=2&limit=1001", "limit", id="too large a page"),
        pytest.param("/v1/history/topics/TopicA/permissions?from=2&to=1", "to", id="permissions"),
        pytest.param("/v1/history/topics/TopicA/permissions?of=2", "of", id="unknown parameter"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_name(quick: Http, path: str, field: str) -> None:
    assert quick.refused("GET", path) == (422, "invalid-field", field)


@pytest.mark.parametrize(
    "path",
    [
        f"{ROUTE}?at=1",
        f"{ROUTE}/diff?from=1&to=2",
        "/v1/history/diff?from=1&to=2",
        "/v1/history/topics/T/permissions",
    ],
)
def test_without_a_pipeline_worker_the_reply_says_how_to_start_one(asking: Http, path: str) -> None:
    reply = asking("GET", path)
    assert (reply.status, reply.json["type"]) == (503, "urn:redis-namesrv:history-not-served")
    assert "mqpipeline answer" in reply.json["detail"]


def test_a_queue_that_is_away(redis: redis_py.Redis) -> None:
    options = Options(redis_url="redis://127.0.0.1:1")
    http = Http(create_app(options, redis=redis).test_client())
    assert http.refused("GET", f"{ROUTE}?at=1") == (503, "queue-unavailable", None)


def test_a_question_is_not_waited_for_without_end(
    asking: Http, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "WAIT_S", 1)
    queue = queue_of(store.url, "default", 1)
    dead = SimpleWorker([queue_name("default")], connection=queue.connection, serializer=JSONSerializer)
    dead.register_birth()  # type: ignore[no-untyped-call]
    assert asking.refused("GET", f"{ROUTE}?at=1") == (504, "history-too-slow", None)
    assert eventually(
        lambda: not queue.get_jobs()
    )  # the next worker of the queue does not begin with this job


def test_of_all_threads_some_stay_for_others(asking: Http) -> None:
    assert asking.refused("GET", f"{ROUTE}?at=1")[1] == "history-not-served"
    waiting = asking.client.application.extensions[history.EXTENSION].waiting
    with waiting:  # one of two threads waits for an answer
        assert asking.refused("GET", f"{ROUTE}?at=1") == (503, "history-busy", None)
    assert asking.refused("GET", f"{ROUTE}?at=1")[1] == "history-not-served"


def test_the_http_side_needs_no_pipeline() -> None:
    code = "import sys, api.app; assert not {'mqpipeline', 'pyspark', 'py4j', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_http_side_needs_of_mqns_only_what_is_installed_with_it() -> None:
    """The console says entries by `mqns.event_words`; the libraries of the command are extras of that package."""
    code = "import sys, api.app; assert not {'httpx', 'rich', 'typer', 'yaml', 'mqns.cli'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "times",
    [pytest.param(api_times, id="the HTTP side"), pytest.param(pipeline_times, id="the pipeline's commands")],
)
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("1795269780123", 1795269780123),
        ("2026-11-21T14:03:00Z", 1795269780000),
        ("2026-11-21T14:03:00.123Z", 1795269780123),
        ("2026-11-21T16:03:00+02:00", 1795269780000),
    ],
)
def test_times_are_read_and_written(text: str, ms: int, times: ModuleType) -> None:
    assert times.parse_time(text) == ms
    assert times.parse_time(times.format_time(ms)) == ms
