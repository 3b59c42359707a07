"""Every page: its headers, its links, and its states."""

import re
from typing import Any

import pytest

from api.console.page import SECTIONS, Section
from api.console.route_picture import shortened
from api.console.static_files import FILES
from tests.api.console.conftest import BrowserOf
from tests.api.console.page import Browser, Page
from tests.api.http import Http, a_broker

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "../..", "=x", "a/b?c#d", "é %2F")


def crawled(browser: Browser, most: int = 200) -> dict[str, Page]:
    """Return the pages to which links lead, from the first one on."""
    seen: dict[str, Page] = {}
    left = ["/console"]
    while left and len(seen) < most:
        path = left.pop()
        if path not in seen:
            seen[path] = browser.get(path)
            left += [target.partition("#")[0] for target in seen[path].targets if target.startswith("/")]
    return seen


def test_no_link_of_any_page_leads_nowhere(browser: Browser, api: Http) -> None:
    api.ok("POST", "/v1/brokers", a_broker())
    for name in HOSTILE:
        api.ok(
            "PUT",
            f"/v1/kv/{name.replace('/', '%2F').replace('?', '%3F').replace('#', '%23')}x/k",
            {"value": name},
        )
    pages = crawled(browser)
    assert {path: page.status for path, page in pages.items() if page.status != 200} == {}
    assert {f"/console/{section.name}".rstrip("/") for section in SECTIONS} <= pages.keys()


def test_no_page_has_a_script_or_style_of_its_own_or_loads_one_of_another_host(
    browser: Browser, api: Http
) -> None:
    api.ok("POST", "/v1/brokers", a_broker())
    for path, page in crawled(browser).items():
        assert "default-src 'none'" in page.headers["Content-Security-Policy"], path
        assert "unsafe" not in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"
        assert re.findall(r"<[^>]*\s(style|on[a-z]+|hx-on[^=]*)=", page.html) == [], path
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style", page.html) == [], path
        assert re.findall(r'(?:src|href)="(?:[a-z]+:)?//', page.html) == [], path


def test_names_are_text_and_no_markup(browser: Browser, api: Http) -> None:
    api.ok("PUT", "/v1/kv/%3Cb%3Ebold%3C%2Fb%3E/%3Ci%3Ek%3C%2Fi%3E", {"value": "<u>v</u>"})
    for path in (
        "/console",
        "/console/kv",
        "/console/kv/%3Cb%3Ebold%3C%2Fb%3E",
        "/console/kv/%3Cb%3Ebold%3C%2Fb%3E/%3Ci%3Ek%3C%2Fi%3E",
    ):
        html = browser.get(path).html
        assert not any(tag in html for tag in ("<b>bold", "<i>k", "<u>v")), path


def asking(section: Section) -> str:
    """Return the path of a section; of history with a question, since it asks nothing of itself."""
    question = "?ask=changes&from=2026-11-29T00:00:00&to=2026-11-30T00:00:00" * (section.name == "history")
    return f"/console/{section.name}".rstrip("/") + question


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name or "overview")
def test_a_page_says_that_the_store_is_away(storeless: Http, section: Section) -> None:
    page = Browser(storeless.client.application).get(asking(section))
    assert page.status in (200, 503)
    assert "store is away" in page.text.lower() or "Not ready" in page.text


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name or "overview")
def test_a_page_says_that_its_caller_may_not_see_it(browser_of: BrowserOf, section: Section) -> None:
    rules = {f"access_{name}": "token" for name in ("read", "admin", "audit", "config")}
    page = browser_of(**rules).get(asking(section))
    assert "You may not see this" in page.text


def test_a_path_that_no_page_has_is_a_page_that_says_so(browser: Browser) -> None:
    page = browser.get("/console/nothing/here")
    assert (page.status, "There is no such page" in page.text) == (404, True)
    assert "/console" in page.targets


def test_a_file_is_asked_for_again_only_if_it_changed(browser: Browser) -> None:
    for name, mimetype in FILES.items():
        file = browser.client.get(f"/console/static/{name}")
        assert (file.status_code, file.mimetype) == (200, mimetype)
        again = browser.client.get(f"/console/static/{name}", headers={"If-None-Match": file.headers["ETag"]})
        assert again.status_code == 304
    assert browser.get("/console/static/blueprint.py").status == 404
    assert browser.get("/console/static/..%2Fsession.py").status == 404


def test_the_overview_says_what_lives_and_what_changed(browser: Browser, api: Http) -> None:
    assert "No broker has registered" in browser.get("/console").text
    api.ok("POST", "/v1/brokers", a_broker())
    page = browser.get("/console")
    assert re.search(r"Clusters 1 Brokers 1 Masters 1 Slaves 0 Topics 2 ", page.text), page.text
    assert "broker registered" in page.text
    api.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "alice", "reason": "kernel"})
    page = browser.get("/console")
    assert "kernel by alice" in page.text
    assert "Well, with remarks" in page.text


def test_names_that_look_like_addresses_lead_nowhere_else(browser: Browser, api: Http) -> None:
    for name in ("https:evil.example", "javascript:alert(1)"):
        api.ok("POST", "/v1/brokers", a_broker(topics=[{"topicName": name}], dataVersion=None))
        page = browser.get(f"/console/topics/{name}")
        assert page.status == 200
        assert [target for target in page.targets if not target.startswith("/console")] == []
        assert re.findall('hx-get="(?![.]/)[^"]*"', page.html) == []


@pytest.mark.parametrize("path", ["events", "audit", "events/between"])
def test_the_last_time_there_is_can_be_asked_for(browser: Browser, path: str) -> None:
    for until in ("253402300799999", "9999-12-31T23:59:59.999"):
        assert browser.get(f"/console/{path}?since=0&until={until}").status == 200


@pytest.mark.parametrize("query", ["after=zz", "waitMillis=x", "no=1"])
def test_what_is_wrong_in_following_changes_is_said(browser: Browser, query: str) -> None:
    assert browser.get(f"/console/changes?{query}").status == 422


def test_a_long_name_costs_no_more_than_a_short_one() -> None:
    looked_at = 0

    class Text(str):
        def __getitem__(self, part: Any) -> str:
            nonlocal looked_at
            cut = super().__getitem__(part)
            looked_at += len(cut)
            return cut

        def __iter__(self) -> Any:
            raise AssertionError("all of it is looked at")

    assert shortened(Text("ab" * 100_000), 20) == "ababababab…babababab"
    assert looked_at < 100


def test_the_overview_says_once_that_the_store_is_away(storeless: Http) -> None:
    page = Browser(storeless.client.application).get("/console")
    assert page.classes.count("state") == 1
