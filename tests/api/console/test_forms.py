"""Changes by forms: proven to be of the session's own page, run dry, confirmed."""

from io import BytesIO
from typing import NoReturn

import pytest

from api.name_server import NameServer
from registry.errors import StoreUnavailable
from tests.api.console.conftest import BrowserOf, Guarded
from tests.api.console.page import HOST, Browser
from tests.api.http import Http

NEW = {"namespace": "app", "key": "colour", "value": "green"}
VALUE = "/v1/kv/app/colour"


def test_a_form_without_the_proof_of_a_page_changes_nothing(browser: Browser, api: Http) -> None:
    for proof in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": "é"}):
        refused = browser.post("/console/kv", {**NEW, **proof, "confirmed": "1"})
        assert refused.status == 403
        assert "another session" in refused.text
    assert api("GET", VALUE).status == 404


def test_the_proof_of_one_session_is_none_of_another(guarded: Guarded) -> None:
    stranger = guarded.browser.get("/console/login").proof
    guarded.browser.log_in(guarded.tokens["operator"])
    refused = guarded.browser.post("/console/kv", {**NEW, "csrf": stranger, "confirmed": "1"})
    assert (refused.status, "another session" in refused.text) == (403, True)


def test_a_form_of_another_site_changes_nothing(browser: Browser, api: Http) -> None:
    fields = {
        **NEW,
        "csrf": browser.get("/console").proof or browser.get("/console/kv").proof,
        "confirmed": "1",
    }
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
        assert browser.post("/console/kv", fields, **headers).status == 403
    assert api("GET", VALUE).status == 404
    assert browser.post("/console/kv", fields, Origin=HOST).status == 303


def test_a_change_is_shown_first_and_made_when_it_is_confirmed(browser: Browser, api: Http) -> None:
    asked = browser.send("/console/kv", NEW)
    assert asked.status == 200
    assert "Set colour of app?" in asked.text
    assert "1 kv changed" in asked.text
    assert api("GET", VALUE).status == 404
    done = browser.confirm("/console/kv", NEW)
    assert done.status == 303
    entry = api.ok("GET", "/v1/events?order=desc&limit=1")["events"][0]
    assert done.headers["Location"] == f"../console/kv/app?done={entry['id']}"
    assert api.ok("GET", VALUE)["value"] == "green"
    assert f"Recorded as entry {entry['id']}" in browser.get(f"/console/kv/app?done={entry['id']}").text


def test_what_is_so_already_is_not_offered(browser: Browser, api: Http) -> None:
    api.ok("PATCH", "/v1/settings", {"settings": {"orderMessageEnable": True}})
    asked = browser.send("/console/settings/orderMessageEnable", {"value": "true"})
    assert "Nothing would change" in asked.text
    assert 'name="confirmed"' not in asked.html


def test_a_value_that_changed_since_it_was_seen_is_kept(browser: Browser, api: Http) -> None:
    api.ok("PUT", VALUE, {"value": "green"})
    page = browser.get("/console/kv/app/colour")
    tag = page.html.split('name="tag" value="')[1].split('"')[0].replace("&#34;", '"')
    api.ok("PUT", VALUE, {"value": "red"})
    fields = {"value": "blue", "tag": tag, "csrf": page.proof, "confirmed": "1"}
    refused = browser.post("/console/kv/app/colour", fields)
    assert refused.status == 412
    assert "changed meanwhile" in refused.text
    assert api.ok("GET", VALUE)["value"] == "red"


def test_a_value_is_deleted_when_that_is_confirmed(browser: Browser, api: Http) -> None:
    api.ok("PUT", VALUE, {"value": "green"})
    tag = browser.get("/console/kv/app/colour").html.split('name="tag" value="')[1].split('"')[0]
    browser.confirm("/console/kv/app/colour", {"delete": "1", "tag": tag})
    assert api("GET", VALUE).status == 404


def test_all_values_of_a_namespace_are_deleted_when_that_is_confirmed(browser: Browser, api: Http) -> None:
    api.ok("PUT", VALUE, {"value": "green"})
    assert browser.confirm("/console/kv/app", {}).status == 303
    assert api.ok("GET", "/v1/kv/app")["table"] == {}


def test_a_setting_that_is_refused_says_why(browser: Browser, api: Http) -> None:
    for key, value, why in (
        ("orderMessageEnable", "perhaps", "neither true nor false"),
        ("kvConfigPath", "/tmp/x", "black list"),
        ("httpPort", "1", "set at the start only"),
    ):
        refused = browser.send(
            "/console/settings/orderMessageEnable", {"value": value}, f"/console/settings/{key}"
        )
        assert refused.status in (403, 422)
        assert why in refused.text


def test_line_feeds_of_a_value_are_those_that_were_typed(browser: Browser, api: Http) -> None:
    browser.confirm("/console/kv", {**NEW, "value": "a\r\nb"})
    assert api.ok("GET", VALUE)["value"] == "a\nb"
    assert "\na\nb</textarea>" in browser.get("/console/kv/app/colour").html


def test_a_change_has_the_operator_as_its_actor(guarded: Guarded) -> None:
    guarded.browser.log_in(guarded.tokens["operator"])
    guarded.browser.confirm("/console/kv", NEW)
    events = Http(guarded.browser.client)(
        "GET",
        "/v1/audit?order=desc&limit=1",
        headers={"Authorization": f"Bearer {guarded.tokens['operator']}"},
    ).json["events"]
    assert [(event["kind"], event["actor"]) for event in events] == [("kv_changed", "token:the-operator")]


def test_pages_are_limited_as_the_requests_that_they_are(browser_of: BrowserOf) -> None:
    browser = browser_of(http_reads_per_second=1)
    pages = [browser.get("/console") for _ in range(4)]
    assert pages[-1].status == 429
    assert "Too many requests" in pages[-1].text


def test_a_form_that_is_too_long_is_refused_before_it_is_read(browser: Browser) -> None:
    for body in ("a=" + "x" * (1 << 20), "&".join(["a="] * 65)):
        answer = browser.client.post(
            "/console/login", data=body, content_type="application/x-www-form-urlencoded"
        )
        assert answer.status_code == 413
    assert browser.client.post("/console/login", data={"a": (BytesIO(b"x"), "f")}).status_code == 415


def test_the_largest_value_is_taken(browser: Browser, api: Http) -> None:
    value = "é" * (131_072 - 100)
    browser.confirm("/console/kv", {**NEW, "value": value})
    assert api.ok("GET", VALUE)["value"] == value


def test_callers_without_a_session_use_up_the_rate_of_none(guarded_with_rates: Guarded) -> None:
    """All come from one address."""
    operator, stranger = guarded_with_rates.new(), guarded_with_rates.new()
    operator.log_in(guarded_with_rates.tokens["operator"])
    statuses = {stranger.post("/console/login", {"token": "x"}).status for _ in range(60)}
    assert statuses == {403, 429}
    assert operator.send("/console/kv", NEW).status == 200


def test_a_value_with_carriage_returns_is_not_for_a_form(browser: Browser, api: Http) -> None:
    api.ok("PUT", VALUE, {"value": "a\r\nb"})
    page = browser.get("/console/kv/app/colour")
    assert "carriage returns" in page.text
    assert "<textarea" not in page.html
    tag = page.form("Delete …").fields[1][1]
    browser.confirm("/console/kv/app/colour", {"delete": "1", "tag": tag})
    assert api("GET", VALUE).status == 404


def test_what_was_confirmed_and_not_answered_may_have_been_done(
    browser: Browser, api: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = browser.send("/console/kv", NEW)
    fields = {**NEW, "csrf": asked.proof}
    monkeypatch.setattr(NameServer, "run", away)
    again = browser.post("/console/kv", fields)
    assert (again.status, "Try again" in again.form("Try again").buttons) == (503, True)
    assert "not known" not in again.text
    page = browser.post("/console/kv", {**fields, "confirmed": "1"})
    assert (page.status, "It is not known whether it was done" in page.text) == (503, True)
    assert "Nothing was changed" not in page.text
    assert "by itself" not in page.text


def away(*_: object) -> NoReturn:
    raise StoreUnavailable("it does not answer")


def test_a_change_shows_what_is_there(browser: Browser, api: Http) -> None:
    api.ok("PUT", VALUE, {"value": "red"})
    tag = browser.get("/console/kv/app/colour").form("See what it would do").fields[1][1]
    assert (
        "What is there red The new value blue"
        in browser.send("/console/kv/app/colour", {"value": "blue", "tag": tag}).text
    )
    page = browser.send("/console/settings/waitSecondsForService", {"value": "9"})
    assert "What is there 45 The new value 9" in page.text
