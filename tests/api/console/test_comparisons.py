"""The page of comparisons of name servers: what each found, and how one is forgotten."""

from typing import Any, Final

import pytest
import redis as redis_py

from registry.keys import Keys
from tests.api.console.conftest import Guarded
from tests.api.console.page import assert_well_formed, load, page, press
from tests.api.http import Http
from tests.api.test_drift import DRIFT, PATH, SAME, SILENT, overdue

HERE: Final = "/console/drift"
HOSTILE: Final = "<b>x</b>"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (SAME, ("they agree", "Of 10.0.0.1:9876 and ns.example:9876")),
        (
            DRIFT,
            (
                "they differ",
                "Differences 3 topic missing, 1 kv differs",
                "TopicTest topic missing unknown at ns.example:9876",
                "1 of 4. All of them: mqns drift 10.0.0.1:9876 ns.example:9876",
            ),
        ),
        (SILENT, ("no answer", "No answer 10.0.0.1:9876: no answer within 5 s")),
    ],
    ids=("same", "drift", "silent"),
)
def test_what_a_comparison_found(http: Http, body: dict[str, Any], said: tuple[str, ...]) -> None:
    http.ok("PUT", PATH, body)
    shown = page(http.client, HERE)
    assert_well_formed(shown)
    assert [words for words in said if words not in shown.content] == []


def test_a_result_that_is_not_renewed_is_stale(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("PUT", PATH, SAME)
    overdue(redis, keys)
    shown = page(http.client, HERE)
    assert "java-and-ours stale" in shown.content
    assert "longer ago than the 3 min for which a result is good" in shown.content


def test_a_finding_leads_to_it(http: Http) -> None:
    http.ok("PUT", PATH, DRIFT)
    found = page(http.client, "/console/findings")
    assert (found.links["java-and-ours"], found.links["comparisons"]) == (HERE, HERE)


def test_what_differs_is_text(http: Http) -> None:
    example = {"kind": "topic-missing", "subject": HOSTILE, "what": HOSTILE}
    http.ok("PUT", PATH, DRIFT | {"examples": [example]})
    shown = page(http.client, HERE)
    assert ("b" in shown.tags, shown.content.count(HOSTILE)) == (False, 2)


def test_one_is_forgotten_after_its_dry_run(http: Http) -> None:
    http.ok("PUT", PATH, DRIFT)
    asked = press(http, load(http, HERE), "Forget …")
    assert ("Forget the comparison java-and-ours?" in asked.text, "1 drift changed" in asked.text) == (
        True,
        True,
    )
    assert http.ok("GET", "/v1/drift")["comparisons"]
    done = press(http, asked, "Forget it")
    assert "Nothing is compared" in done.text
    assert http.ok("GET", "/v1/drift")["comparisons"] == []


def test_a_reader_is_denied(guarded: Guarded) -> None:
    guarded.browser.log_in(guarded.tokens["reader"])
    shown = guarded.browser.get(HERE)
    assert (shown.status, "You may not see this" in shown.text) == (403, True)


def test_a_store_that_is_away_is_said(storeless: Http) -> None:
    shown = page(storeless.client, HERE)
    assert_well_formed(shown)
    assert (shown.status, "The store is away" in shown.content) == (503, True)
