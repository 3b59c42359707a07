"""Sessions: a token in a sealed cookie, proven at each request."""

import re
import time

import pytest
import redis as redis_py
from cryptography.fernet import Fernet

from api.console.session import COOKIE, SESSION_S
from registry.keys import Keys
from tests.api.console.conftest import Guarded
from tests.api.console.page import Browser


def cookie_of(browser: Browser) -> str:
    cookie = browser.client.get_cookie(COOKIE, path="/console")
    return "" if cookie is None else cookie.value


def give(browser: Browser, cookie: str) -> None:
    browser.client.set_cookie(COOKIE, cookie, path="/console")


def sealed(redis: redis_py.Redis, token: str, at_s: float) -> str:
    return Fernet(str(redis.get(Keys().access_sessions))).encrypt_at_time(token.encode(), int(at_s)).decode()


def test_a_token_is_kept_sealed_in_a_cookie_that_scripts_and_other_sites_never_see(guarded: Guarded) -> None:
    token = guarded.tokens["reader"]
    answer = guarded.browser.log_in(token)
    assert answer.status == 303
    cookie = answer.headers["Set-Cookie"]
    assert all(
        word in cookie for word in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age=28800")
    )
    assert token not in cookie
    page = guarded.browser.get("/console")
    assert page.status == 200
    assert "the-reader" in page.text
    assert "Log out" in page.text


def test_without_a_token_nothing_is_shown_where_the_rules_want_one(guarded: Guarded) -> None:
    page = guarded.browser.get("/console")
    assert "You may not see this" in page.text
    assert "Log in" in page.text
    assert "data-changes" not in page.html
    assert "All is well" not in page.text


def test_a_wrong_token_is_refused_and_kept_nowhere(guarded: Guarded) -> None:
    answer = guarded.browser.log_in("mqns_wrong")
    assert answer.status == 401
    assert "proves no principal" in answer.text
    assert "mqns_wrong" not in answer.html
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("token", ["", " ", "é", "x" * 1025])
def test_what_can_be_no_token_is_not_asked_for(guarded: Guarded, token: str) -> None:
    assert guarded.browser.log_in(token).status == 422


def test_logging_out_forgets_the_token(guarded: Guarded) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    guarded.browser.send("/console", {}, "/console/logout")
    assert cookie_of(guarded.browser) == ""
    assert "You may not see this" in guarded.browser.get("/console").text


def test_every_worker_opens_the_cookie(guarded: Guarded) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    other = guarded.new()
    give(other, cookie_of(guarded.browser))
    assert "the-reader" in other.get("/console").text


def test_a_session_is_over_after_eight_hours_whatever_the_browser_keeps(
    guarded: Guarded, redis: redis_py.Redis
) -> None:
    guarded.browser.get("/console")
    token = guarded.tokens["reader"]
    give(guarded.browser, sealed(redis, token, time.time() - SESSION_S + 60))
    assert "the-reader" in guarded.browser.get("/console").text
    give(guarded.browser, sealed(redis, token, time.time() - SESSION_S - 60))
    assert "the-reader" not in guarded.browser.get("/console").text


@pytest.mark.parametrize("cookie", ["x", "gAAAAA" + "A" * 100, "A" * 5000, "é"])
def test_a_cookie_that_was_not_sealed_here_is_none(guarded: Guarded, cookie: str) -> None:
    give(guarded.browser, cookie)
    page = guarded.browser.get("/console")
    assert page.status == 200
    assert "You may not see this" in page.text


def test_a_changed_cookie_is_none(guarded: Guarded) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    cookie = cookie_of(guarded.browser)
    give(guarded.browser, cookie[:-6] + ("A" if cookie[-6] != "A" else "B") + cookie[-5:])
    assert "the-reader" not in guarded.browser.get("/console").text


def test_a_token_that_is_no_principal_s_any_more_leads_to_the_login(
    guarded: Guarded, redis: redis_py.Redis
) -> None:
    guarded.browser.get("/console")
    give(guarded.browser, sealed(redis, "mqns_revoked", time.time()))
    answer = guarded.browser.get("/console/kv/app")
    assert (answer.status, answer.headers["Location"]) == (303, "../../console/login?over=1")
    assert cookie_of(guarded.browser) == ""
    assert "Your session is over" in guarded.browser.get("/console/login?over=1").text
    give(guarded.browser, sealed(redis, "mqns_revoked", time.time()))
    part = guarded.browser.get("/console", HX_Request="true")
    assert (part.status, part.headers["HX-Redirect"]) == (401, "console/login?over=1")


def test_another_key_in_the_store_ends_all_sessions_and_begins_new_ones(
    guarded: Guarded, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    redis.delete(Keys().access_sessions)
    other = guarded.new()
    other.log_in(guarded.tokens["operator"])
    monkeypatch.setattr("api.console.session.KEY_AGAIN_S", 0.0)
    give(guarded.browser, cookie_of(other))
    assert "the-operator" in guarded.browser.get("/console").text


def test_a_reader_is_shown_no_form_that_changes(guarded: Guarded) -> None:
    guarded.browser.log_in(guarded.tokens["operator"])
    guarded.browser.confirm("/console/kv", {"namespace": "app", "key": "colour", "value": "green"})
    assert "<textarea" in guarded.browser.get("/console/kv/app/colour").html
    reader = guarded.new()
    reader.log_in(guarded.tokens["reader"])
    page = reader.get("/console/kv/app/colour")
    assert "green" in page.text
    assert "not change it" in page.text
    assert "<textarea" not in page.html
    proof = re.search('name="csrf" value="([0-9a-f]+)"', reader.get("/console").html)
    assert proof
    refused = reader.post("/console/kv/app/colour", {"value": "x", "csrf": proof[1], "confirmed": "1"})
    assert refused.status == 403
    assert "green" in reader.get("/console/kv/app/colour").text


@pytest.mark.parametrize("damage", ["", "short", "x" * 44])
def test_a_key_that_another_program_wrote_is_replaced(
    guarded: Guarded, redis: redis_py.Redis, damage: str
) -> None:
    redis.set(Keys().access_sessions, damage)
    assert guarded.browser.log_in(guarded.tokens["reader"]).status == 303
    assert "the-reader" in guarded.browser.get("/console").text
