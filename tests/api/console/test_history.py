"""The page of history: its questions, and how it shows answers of the pipeline, whose own tests have them."""

from typing import Any

import fakeredis
import pytest
import redis as redis_py

from api import history
from api.app import create_app
from api.history_queue import JobFailed, NoWorker, TimedOut
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from tests.api.console.page import assert_well_formed, page
from tests.api.http import Http

W0 = 1_767_225_600_000
LANDED = {"fromMillis": W0, "untilMillis": W0 + 3_600_000}
ROUTE: dict[str, Any] = {
    "outside": False,
    "landed": LANDED,
    "topic": "T1",
    "atMillis": W0,
    "provisional": True,
    "route": {
        "brokerDatas": [
            {
                "brokerName": "b",
                "cluster": "c1",
                "brokerAddrs": {"0": "h:1"},
                "enableActingMaster": False,
            }
        ],
        "queueDatas": [
            {"brokerName": "b", "readQueueNums": 8, "writeQueueNums": 4, "perm": 6, "topicSysFlag": 0}
        ],
    },
}
SHOWN = {
    "cluster": "c1",
    "readQueueNums": 4,
    "writeQueueNums": 4,
    "perm": 4,
    "topicSysFlag": 0,
    "brokerAddrs": {0: "h:1"},
    "enableActingMaster": False,
    "zoneName": None,
}
CAUSED = {
    "topic": "<i>T1",
    "brokerName": "b",
    "atMillis": W0 + 1000,
    "eventId": f"{W0 + 1000}-0",
    "cause": "topic_register",
    "actor": "token:alice",
    "op": "o",
}
CHANGE = {**CAUSED, "change": "removed", "fields": (), "before": SHOWN, "after": None}
DIFF: dict[str, Any] = {
    "outside": False,
    "landed": LANDED,
    "fromMillis": W0,
    "toMillis": W0,
    "provisional": False,
    "changes": (CHANGE,),
    "next": "n",
}
PERMISSIONS: dict[str, Any] = {
    "outside": False,
    "landed": LANDED,
    "fromMillis": W0,
    "toMillis": W0,
    "changes": ({**CAUSED, "before": 6, "after": 4},),
    "more": True,
}
AT = "/console/history?ask=route&topic=T1&at=2026-01-01T00:00"


@pytest.fixture
def asking(store: EmbeddedStore, redis: redis_py.Redis) -> Http:
    """Return a client of an application whose job queue is on the store."""
    return Http(create_app(Options(redis_url=store.url, http_threads=2), redis=redis).test_client())


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Answer questions as a process of the pipeline would, and return what was asked."""
    replies = {"route": ROUTE, "diff": DIFF, "permissions": PERMISSIONS}
    asked: list[tuple[str, dict[str, Any]]] = []

    def reply(_: object, question: str, arguments: dict[str, Any], __: int) -> dict[str, Any]:
        asked.append((question, arguments))
        return dict(replies[question])

    monkeypatch.setattr(history, "ask", reply)
    return asked


def test_the_page_asks_nothing_by_itself(asking: Http, questions: list[Any]) -> None:
    shown = page(asking.client, "/console/history")
    assert_well_formed(shown)
    assert (shown.status, questions) == (200, [])
    assert "A route at a time" in shown.content


def test_a_route_of_then(asking: Http, questions: list[Any]) -> None:
    shown = page(asking.client, f"{AT}&recorded=1")
    assert_well_formed(shown)
    question, arguments = questions[0]
    assert (question, arguments["topic"], arguments["at_ms"], arguments["as_recorded"]) == (
        "route",
        "T1",
        W0,
        True,
    )
    assert "Route of T1 at 2026-01-01 00:00:00" in shown.content
    assert "b c1 0=h:1 8 4 RW-" in shown.content
    assert "Provisional" in shown.content
    assert "cover 2026-01-01 00:00:00 UTC to 2026-01-01 01:00:00 UTC" in shown.content
    assert shown.links["b"] == "/console/brokers/b"
    assert shown.values["route-at"] == "2026-01-01T00:00:00"
    assert shown.values["changes-topic"] == "T1"


@pytest.mark.parametrize("topic", ["", "T1"])
def test_what_differed_between_two_times(asking: Http, questions: list[Any], topic: str) -> None:
    query = f"ask=changes&topic={topic}&from=2026-01-01T00:00&to=2026-01-01T00:30:00.5Z"
    shown = page(asking.client, f"/console/history?{query}")
    assert_well_formed(shown)
    _, arguments = questions[0]
    assert (arguments["topic"], arguments["from_ms"], arguments["to_ms"]) == (
        topic or None,
        W0,
        W0 + 1_800_500,
    )
    assert "removed 4/4 R-- 0=h:1 none topic register token:alice" in shown.content
    assert shown.links["<i>T1"] == "/console/topics/%3Ci%3ET1"
    assert shown.links["2026-01-01 00:00:01 UTC"] == f"/console/events?since={W0 + 1000}&until={W0 + 1000}"
    page(asking.client, shown.links["Next page"])
    assert questions[1][1]["after"] == "n"


def test_permissions_over_time(asking: Http, questions: list[Any]) -> None:
    shown = page(asking.client, "/console/history?ask=permissions&topic=T1&broker=b")
    assert_well_formed(shown)
    assert (questions[0][1]["broker"], questions[0][1]["from_ms"]) == ("b", None)
    assert "b RW- R-- topic register token:alice" in shown.content
    assert "There were others before" in shown.content


def test_what_did_not_change(asking: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = {"diff": {**DIFF, "changes": (), "next": None}, "permissions": {**PERMISSIONS, "changes": ()}}
    monkeypatch.setattr(history, "ask", lambda _, question, __, ___: dict(replies[question]))
    diff = page(asking.client, "/console/history?ask=changes&from=1&to=2")
    assert "No route differs between these times." in diff.content
    permissions = page(asking.client, "/console/history?ask=permissions&topic=T1")
    assert "Its permissions did not change in this time." in permissions.content


def test_without_a_process_of_the_pipeline_it_says_how_to_start_one(asking: Http) -> None:
    shown = page(asking.client, AT)
    assert_well_formed(shown)
    assert shown.status == 503
    assert "There is no history here" in shown.content
    assert "mqpipeline answer --warehouse FOLDER" in shown.content
    assert "The store is away" not in shown.content


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NoWorker(), 503, "There is no history here"),
        (TimedOut(), 504, "no answer within 30 s"),
        (JobFailed(), 500, "its log says why"),
        (redis_py.ConnectionError("refused"), 503, "The job queue is away"),
    ],
)
def test_an_answer_that_does_not_come(
    asking: Http, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, words: str
) -> None:
    def ask(*_: object) -> None:
        raise error

    monkeypatch.setattr(history, "ask", ask)
    shown = page(asking.client, AT)
    assert_well_formed(shown)
    assert (shown.status, words in shown.content) == (status, True)


def test_too_many_that_ask_at_once(asking: Http) -> None:
    page(asking.client, AT)
    with asking.client.application.extensions[history.EXTENSION].waiting:  # one of two threads waits
        shown = page(asking.client, AT)
    assert (shown.status, "Too many ask at once" in shown.content) == (503, True)


def test_times_that_are_not_landed(asking: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ask", lambda *_: {"outside": True, "landed": LANDED})
    shown = page(asking.client, AT)
    assert (shown.status, "Not in the tables" in shown.content) == (404, True)
    assert "from 2026-01-01T00:00:00.000Z until 2026-01-01T01:00:00.000Z" in shown.content


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("ask=route&topic=T1", "at"),
        ("ask=route&topic=T1&at=then", "at"),
        ("ask=changes&from=2&to=1", "to"),
        ("ask=changes", "from"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_field(quick: Http, query: str, field: str) -> None:
    shown = page(quick.client, f"/console/history?{query}")
    assert (shown.status, f"{field}: " in shown.content) == (422, True)


def test_a_caller_without_the_class_is_denied() -> None:
    store = fakeredis.FakeRedis(decode_responses=True)
    http = Http(create_app(Options(access_audit="off"), redis=store).test_client())
    shown = page(http.client, AT)
    assert (shown.status, "You may not see this" in shown.content) == (401, True)
