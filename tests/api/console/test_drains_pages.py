"""Drains: made on the page of a broker, ended there and from the list."""

from urllib.parse import quote

import pytest
import redis as redis_py

from api.app import create_app
from api.console import drains
from registry.keys import Keys
from registry.options.catalogue import Options
from tests.api.console.page import load, press
from tests.api.http import MASTER, Http, a_broker
from tests.api.test_drains import later

BROKER = "/console/brokers/broker-a"
DRAIN = "/v1/brokers/broker-a/drain"
WANTED = {"owner": "al<b>ice", "reason": "kernel <b>upgrade"}


def drained(http: Http, name: str = "broker-a", **members: object) -> None:
    http.ok("POST", "/v1/brokers", a_broker(brokerName=name))
    http.ok("PUT", f"/v1/brokers/{quote(name, safe='')}/drain", {**WANTED, **members})


def test_a_broker_is_drained_after_its_dry_run(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    asked = press(http, load(http, BROKER), "Drain …", **WANTED)
    assert "Drain broker-a?" in asked.text
    assert "Topics that producers could not write to 1 TopicA" in asked.text
    assert "without write permission until the drain is ended" in asked.text
    assert "Owner: al<b>ice. Reason: kernel <b>upgrade." in asked.text
    assert http.refused("GET", DRAIN) == (404, "drain-not-found", None)
    done = press(http, asked, "Drain it")
    assert http.ok("GET", DRAIN).items() >= {**WANTED, "untilMillis": None}.items()
    assert "Drained. kernel <b>upgrade By al<b>ice, since" in done.text


@pytest.mark.parametrize(
    ("unit", "length_ms"), [("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)]
)
def test_a_drain_has_a_length(http: Http, redis: redis_py.Redis, unit: str, length_ms: int) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    asked = press(http, load(http, BROKER), "Drain …", **WANTED, length="3", unit=unit)
    assert "UTC if you confirm now" in asked.text
    before = later(redis, 0)
    press(http, asked, "Drain it")
    until = http.ok("GET", DRAIN)["untilMillis"]
    assert before + 3 * length_ms <= until <= later(redis, 1000) + 3 * length_ms


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        pytest.param("length", "0", "a whole number from 1 to 9999", id="no length"),
        pytest.param("length", "-1", "a whole number from 1 to 9999", id="a negative length"),
        pytest.param("length", "1" * 9, "a whole number from 1 to 9999", id="a long one"),
        pytest.param("unit", "years", "a whole number from 1 to 9999", id="another unit"),
        pytest.param("owner", " ", "owner: ", id="blanks for an owner"),
        pytest.param("reason", "", "reason: ", id="no reason"),
    ],
)
def test_what_makes_no_sense_is_named(http: Http, field: str, value: str, said: str) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    typed = {**WANTED, "length": "1", "unit": "hours", field: value}
    page = press(http, load(http, BROKER), "Drain …", **typed)
    assert (page.status, said in page.text) == (422, True)
    assert http.refused("GET", DRAIN) == (404, "drain-not-found", None)


def test_a_drain_is_ended_on_the_page_of_its_broker(http: Http) -> None:
    drained(http)
    page = load(http, BROKER)
    assert ("reason", WANTED["reason"]) in page.form("Replace the drain …").fields
    asked = press(http, page, "End the drain …")
    assert http.ok("GET", DRAIN)
    done = press(http, asked, "End the drain")
    assert http.refused("GET", DRAIN) == (404, "drain-not-found", None)
    assert "Drained." not in done.text


def test_the_list_of_drains(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    drained(http)
    drained(http, "a/b", untilMillis=1_900_000_000_000)
    drained(http, "gone")
    drained(http, "wrong")
    http.ok("DELETE", f"/v1/brokers/gone?cluster=c1&brokerAddr={MASTER}")
    redis.hset(keys.drains, "wrong", "notjson")
    page = load(http, "/console/drains")
    assert page.links["a/b"] == "/console/brokers/a%2Fb"
    for said in (
        *("kernel <b>upgrade al<b>ice no end is set", "2030-03-17 17:46:40 UTC"),
        *("broker is gone", "damaged Routes obey it"),
    ):
        assert said in page.text, said
    assert "Drains on this page: 4" in page.text


def test_a_drain_is_ended_from_the_list(http: Http) -> None:
    drained(http)
    drained(http, "broker-b")
    page = load(http, "/console/drains")
    asked = press(http, page, "End …")  # of the first
    assert "End the drain of broker-a?" in asked.text
    done = press(http, asked, "End the drain")
    assert done.address.startswith("/console/drains?done=")
    assert ("broker-a" in done.links, "broker-b" in done.links) == (False, True)


def test_drains_in_pages(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "LISTED", 1)
    drained(http)
    drained(http, "broker-b")
    page = load(http, load(http, "/console/drains").links["Next page"])
    assert ("broker-a" in page.links, "broker-b" in page.links, "Next page" in page.links) == (
        False,
        True,
        False,
    )


def test_no_drain(http: Http) -> None:
    page = load(http, "/console/drains")
    assert "No broker is drained" in page.text
    assert page.links["choose the broker"] == "/console/brokers"


def test_a_reader_ends_none(http: Http, redis: redis_py.Redis) -> None:
    drained(http)
    reader = Http(create_app(Options(access_admin="off"), redis=redis).test_client())
    page = load(reader, "/console/drains")
    assert "to end one needs the class admin" in page.text
    assert not any("End …" in form.buttons for form in page.forms)
