"""Each route has one class of access, by a table (row AC-41)."""

from typing import Any

import fakeredis
import pytest
from apiflask import APIFlask

from access.classes import ALL, OPEN, REMOTING, AccessClass
from api.access_classes import CONSOLE, HTTP
from api.app import create_app
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from worker.dispatch import HANDLERS

READING = {"GET", "HEAD", "OPTIONS"}


@pytest.fixture(scope="module")
def app() -> APIFlask:
    store: Any = fakeredis.FakeRedis(decode_responses=True)
    return create_app(Options(), redis=store)


@pytest.mark.conformance("AC-41")
def test_the_table_has_the_endpoints_of_the_application(app: APIFlask) -> None:
    assert {rule.endpoint for rule in app.url_map.iter_rules()} == HTTP.keys()


def test_an_endpoint_has_one_class() -> None:
    assert {of_class for of_class in HTTP.values() if of_class} == set(ALL)


def test_what_changes_something_is_of_operators_or_brokers(app: APIFlask) -> None:
    """But for pages of the console, which ask the API for the change, as any caller."""
    writes = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if (rule.methods or set()) - READING and rule.endpoint not in CONSOLE
    }
    assert {HTTP[endpoint] for endpoint in writes} == {
        AccessClass.BROKER,
        AccessClass.ADMIN,
        AccessClass.CONFIG,
    }


def test_probes_the_documentation_and_the_list_of_name_servers_are_open(app: APIFlask) -> None:
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint not in CONSOLE]
    open_to_all = {rule.rule for rule in rules if HTTP[rule.endpoint] is OPEN}
    assert open_to_all == {
        *("/healthz", "/readyz", "/openapi.json", "/", "/docs", "/docs/<name>", "/v1/whoami"),
        *("/rocketmq/nsaddr", "/rocketmq/nsaddr-<unit>"),  # clients that ask there have no token
    }


def test_what_the_table_has_not_is_refused() -> None:
    store: Any = fakeredis.FakeRedis(decode_responses=True)
    app = create_app(Options(access_read="open", access_admin="open"), redis=store)
    app.add_url_rule("/v1/new", "new", lambda: "secret")
    reply = app.test_client().get("/v1/new")
    assert (reply.status_code, "secret" in reply.text) == (403, False)


@pytest.mark.conformance("AC-41")
def test_a_request_code_that_is_handled_has_a_class() -> None:
    import worker.handlers  # noqa: F401  fills the table

    assert HANDLERS.keys() == REMOTING.keys()
    assert {code for code, of_class in REMOTING.items() if not of_class} == {RequestCode.CHECK_READINESS}
