"""The page of the doctor's findings."""

import fakeredis
import pytest

from api.app import create_app
from api.console import findings
from api.console.asking import Reply
from registry.options.catalogue import Options
from tests.api.console.page import assert_well_formed, page
from tests.api.http import Http, a_broker

SLAVE_ONLY = {"brokerName": "broker-s", "brokerId": 1, "brokerAddr": "127.0.1.9:10911", "topics": []}


def test_findings_are_shown_the_worst_first_with_what_to_do(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(**SLAVE_ONLY))
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "alice", "reason": "disk"})
    shown = page(http.client, "/console/findings")
    assert_well_formed(shown)
    assert shown.content.index("Broker without master error") < shown.content.index("Broker drained warning")
    assert "by alice" in shown.content
    assert "What to do Start the master again" in shown.content
    assert 'mqns drains --http "$MQNS_HTTP"' in shown.content
    assert shown.links["broker-s"] == "/console/brokers/broker-s"
    assert shown.links["broker-a"] == "/console/brokers/broker-a"


def test_a_hostile_name_is_text(http: Http) -> None:
    name = "<b>x</b>"
    http.ok("POST", "/v1/brokers", a_broker(**{**SLAVE_ONLY, "brokerName": name}))
    shown = page(http.client, "/console/findings")
    assert "b" not in shown.tags
    assert shown.links[name] == "/console/brokers/%3Cb%3Ex%3C%2Fb%3E"


def test_the_worst_comes_first_whatever_the_order_of_the_answer(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        {"severity": severity, "check": f"a-{severity}", "subjects": ["x"], "count": 3}
        | dict.fromkeys(("what", "why", "advice", "command"), "")
        for severity in ("info", "error", "warning")
    ]
    monkeypatch.setattr(findings, "ask", lambda *_: Reply(200, {"nowMillis": 0, "findings": found}))
    text = page(http.client, "/console/findings").content
    assert text.index("A error") < text.index("A warning") < text.index("A info")
    assert text.count("x and 2 others") == 3


def test_nothing_found(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "ask", lambda *_: Reply(200, {"nowMillis": 0, "findings": []}))
    shown = page(http.client, "/console/findings")
    assert_well_formed(shown)
    assert "Nothing found" in shown.content
    assert "Looked at 1970-01-01 00:00:00 UTC" in shown.content


def test_a_store_that_is_away_is_said(storeless: Http) -> None:
    shown = page(storeless.client, "/console/findings")
    assert_well_formed(shown)
    assert (shown.status, "The store is away" in shown.content) == (503, True)


def test_a_caller_without_the_class_is_denied() -> None:
    store = fakeredis.FakeRedis(decode_responses=True)
    http = Http(create_app(Options(access_audit="off"), redis=store).test_client())
    shown = page(http.client, "/console/findings")
    assert (shown.status, "You may not see this" in shown.content) == (401, True)
