"""Sessions: a token in a sealed cookie, proven at each request."""

import time
from hashlib import sha256
from typing import Any, NoReturn

import pytest
import redis as redis_py
from cryptography.fernet import Fernet

from api.access_records import write_pending
from api.console.session import COOKIE, SESSION_S
from api.name_server import NameServer
from registry.errors import StoreUnavailable
from registry.keys import Keys
from tests.api.console.conftest import BrowserOf, Guarded
from tests.api.console.page import Browser


def key_in(redis: redis_py.Redis) -> str:
    return str(redis.get(Keys().access_sessions))


def name_by(key: str) -> str:
    return f"{COOKIE}{sha256(key.encode()).hexdigest()[:8]}"


def cookie_of(browser: Browser, key: str) -> str:
    cookie = browser.client.get_cookie(name_by(key), path="/console")
    return "" if cookie is None else cookie.value


def give(browser: Browser, key: str, cookie: str) -> None:
    browser.client.set_cookie(name_by(key), cookie, path="/console")


def sealed(key: str, token: str, at_s: float) -> str:
    return Fernet(key).encrypt_at_time(token.encode(), int(at_s)).decode()


@pytest.fixture
def key(guarded: Guarded, redis: redis_py.Redis) -> str:
    """Return the key, which the first page has made."""
    guarded.browser.get("/console")
    return key_in(redis)


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


def test_logging_out_forgets_the_token(guarded: Guarded, key: str) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    guarded.browser.send("/console", {}, "/console/logout")
    assert cookie_of(guarded.browser, key) == ""
    assert "You may not see this" in guarded.browser.get("/console").text


def test_every_worker_opens_the_cookie(guarded: Guarded, key: str) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    other = guarded.new()
    give(other, key, cookie_of(guarded.browser, key))
    assert "the-reader" in other.get("/console").text


def test_a_session_is_over_after_eight_hours_whatever_the_browser_keeps(guarded: Guarded, key: str) -> None:
    token = guarded.tokens["reader"]
    give(guarded.browser, key, sealed(key, token, time.time() - SESSION_S + 60))
    assert "the-reader" in guarded.browser.get("/console").text
    give(guarded.browser, key, sealed(key, token, time.time() - SESSION_S - 60))
    assert "the-reader" not in guarded.browser.get("/console").text


@pytest.mark.parametrize("cookie", ["x", "gAAAAA" + "A" * 100, "A" * 5000, "é"])
def test_a_cookie_that_was_not_sealed_here_is_none(guarded: Guarded, key: str, cookie: str) -> None:
    give(guarded.browser, key, cookie)
    page = guarded.browser.get("/console")
    assert page.status == 200
    assert "You may not see this" in page.text


def test_a_changed_cookie_is_none(guarded: Guarded, key: str) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    cookie = cookie_of(guarded.browser, key)
    give(guarded.browser, key, cookie[:-6] + ("A" if cookie[-6] != "A" else "B") + cookie[-5:])
    assert "the-reader" not in guarded.browser.get("/console").text


def test_a_token_that_is_no_principal_s_any_more_leads_to_the_login(guarded: Guarded, key: str) -> None:
    give(guarded.browser, key, sealed(key, "mqns_revoked", time.time()))
    answer = guarded.browser.get("/console/kv/app")
    assert (answer.status, answer.headers["Location"]) == (303, "../../console/login?over=1")
    assert cookie_of(guarded.browser, key) == ""
    assert "Your session is over" in guarded.browser.get("/console/login?over=1").text
    give(guarded.browser, key, sealed(key, "mqns_revoked", time.time()))
    part = guarded.browser.get("/console", HX_Request="true")
    assert (part.status, part.headers["HX-Redirect"]) == (401, "console/login?over=1")


def test_a_key_that_is_deleted_ends_all_sessions_at_every_worker(
    guarded: Guarded, key: str, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    cookie = cookie_of(guarded.browser, key)
    redis.delete(Keys().access_sessions)
    assert "the-reader" in guarded.browser.get("/console").text  # for KEY_FOR_S
    monkeypatch.setattr("api.console.session.KEY_FOR_S", 0.0)
    assert "the-reader" not in guarded.browser.get("/console").text
    assert key_in(redis) != key
    other = guarded.new()
    give(other, key, cookie)
    assert "the-reader" not in other.get("/console").text


def test_a_form_is_taken_by_a_worker_that_knows_the_key_before(
    guarded: Guarded, key: str, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.delete(Keys().access_sessions)
    monkeypatch.setattr("api.console.session.AGAIN_S", 0.0)
    proof = guarded.new().get("/console/login").proof
    answer = guarded.browser.post("/console/login", {"csrf": proof, "token": guarded.tokens["reader"]})
    assert answer.status == 303


def test_sessions_are_good_while_the_store_is_away(
    guarded: Guarded, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    monkeypatch.setattr("api.console.session.KEY_FOR_S", 0.0)
    monkeypatch.setattr(NameServer, "run_probe", away)
    monkeypatch.setattr(NameServer, "run", away)
    page = guarded.browser.get("/console/brokers")
    assert (page.status, "the-reader" in page.text) == (503, True)
    give(guarded.browser, key, "x")  # which opens nothing, and has no key forgotten
    guarded.browser.get("/console")
    guarded.browser.client.delete_cookie(name_by(key), path="/console")
    assert "You may not see this" in guarded.browser.get("/console").text


def away(*_: object) -> NoReturn:
    raise StoreUnavailable("it does not answer")


def test_many_pages_of_a_session_that_is_over_shut_no_host_out(guarded: Guarded, key: str) -> None:
    for _ in range(30):
        give(guarded.browser, key, sealed(key, "mqns_revoked", time.time()))
        assert guarded.browser.get("/console").status == 303
    assert guarded.new().log_in(guarded.tokens["reader"]).status == 303
    for _ in range(10):
        assert guarded.browser.log_in("mqns_guess").status == 401
    assert guarded.browser.log_in(guarded.tokens["reader"]).status == 429


@pytest.mark.parametrize("given", ["Basic YTpi", "Negotiate x", ""])
def test_what_a_proxy_s_own_users_prove_themselves_with_is_no_session(guarded: Guarded, given: str) -> None:
    page = guarded.browser.get("/console/login", Authorization=given)
    assert (page.status, "Paste a bearer token" in page.text) == (200, True)
    guarded.browser.log_in(guarded.tokens["reader"])
    assert "the-reader" in guarded.browser.get("/console", Authorization=given).text


def test_a_token_in_a_header_that_proves_nothing_leads_to_no_login(guarded: Guarded) -> None:
    page = guarded.browser.get("/console/brokers", Authorization="Bearer mqns_wrong")
    assert (page.status, "You may not see this" in page.text) == (401, True)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/console/nothing", 303), ("/console/settings/x?a=1", 303), ("/console/static/nothing", 404)],
)
def test_a_page_that_fails_in_a_session_that_is_over_leads_to_the_login(
    guarded: Guarded, key: str, path: str, status: int
) -> None:
    """But for files, which know no session."""
    give(guarded.browser, key, sealed(key, "mqns_revoked", time.time()))
    assert guarded.browser.get(path).status == status


def test_two_name_servers_on_one_host_have_sessions_of_their_own(guarded: Guarded, key: str) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    other = Fernet.generate_key().decode()
    give(guarded.browser, other, sealed(other, guarded.tokens["operator"], time.time()))
    assert "the-reader" in guarded.browser.get("/console").text


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
    proof = reader.get("/console").proof
    refused = reader.post("/console/kv/app/colour", {"value": "x", "csrf": proof, "confirmed": "1"})
    assert refused.status == 403
    assert "green" in reader.get("/console/kv/app/colour").text


@pytest.mark.parametrize("damage", ["", "short", "x" * 44])
def test_a_key_that_another_program_wrote_is_replaced(
    guarded: Guarded, redis: redis_py.Redis, damage: str
) -> None:
    redis.set(Keys().access_sessions, damage)
    assert guarded.browser.log_in(guarded.tokens["reader"]).status == 303
    assert "the-reader" in guarded.browser.get("/console").text


@pytest.mark.parametrize(
    ("onward", "then"),
    [
        ("kv/app/a%2Fb", "/kv/app/a%2Fb"),
        ("events?kind=kv_changed&after=1-0", "/events?kind=kv_changed&after=1-0"),
        ("", ""),
        ("/evil.example", ""),
        ("//evil.example", ""),
        ("https://evil.example", ""),
        ("kv/../../..", ""),
        ("kv\r\nX: y", ""),
    ],
)
def test_a_login_leads_on_to_the_page_that_wanted_it(guarded: Guarded, onward: str, then: str) -> None:
    answer = guarded.browser.send("/console/login", {"token": guarded.tokens["reader"], "next": onward})
    assert (answer.status, answer.headers["Location"]) == (303, f"../console{then}")


def test_a_page_that_wants_a_login_names_itself(guarded: Guarded) -> None:
    page = guarded.browser.get("/console/kv/app?after=x&done=nothing")
    assert page.link("Log in") == "/console/login"
    assert "/console/login?next=kv%2Fapp%3Fafter%3Dx" in page.targets
    login = guarded.browser.get("/console/login?next=kv%2Fapp%3Fafter%3Dx")
    assert ("next", "kv/app?after=x") in login.form("Log in").fields


def test_pages_that_look_again_are_no_denials_for_the_audit(guarded: Guarded, redis: redis_py.Redis) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    for path in ("/console", "/console/events", "/console/settings"):
        page = guarded.browser.get(path)
        assert "it needs the class" in page.text
    assert denials(redis) == []
    refused = guarded.browser.send("/console", {"namespace": "n", "key": "k", "value": "v"}, "/console/kv")
    assert refused.status == 403
    assert denials(redis) == ["PUT /v1/kv/<namespace>/<path:key>"]


def denials(redis: redis_py.Redis) -> list[str]:
    write_pending()
    entries: Any = redis.xrange(Keys().events)
    return [fields["operation"] for _, fields in entries if fields["kind"] == "access_denied"]


def test_what_is_answered_while_rules_are_observed_is_shown(browser_of: BrowserOf) -> None:
    browser = browser_of(access_read="token", access_audit="token", access_mode="observe")
    assert "You may not see this" not in browser.get("/console/events").text
