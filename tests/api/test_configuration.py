"""KV configuration and settings."""

import pytest
import redis as redis_py

from api.app import create_app
from registry.options.catalogue import Options
from tests.api.http import Http


def test_values_come_and_go(http: Http) -> None:
    assert http.ok("PUT", "/v1/kv/n/k", {"value": "v"})["eventId"]
    assert http.ok("GET", "/v1/kv/n/k") == {"namespace": "n", "key": "k", "value": "v"}
    assert http.ok("PUT", "/v1/kv/n/k", {"value": "v"})["eventId"] is None
    assert http.ok("DELETE", "/v1/kv/n/k")["eventId"]
    assert http.refused("DELETE", "/v1/kv/n/k") == (404, "config-not-found", None)
    assert http.ok("GET", "/v1/kv/n") == {"namespace": "n", "table": {}, "next": None}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("a/b", "slash", id="a slash in the key"),
        pytest.param("a//b", "slashes", id="two of them"),
        pytest.param("%E4%BD%A0", " 好\n\x00 ", id="any text"),
        pytest.param("k", "", id="an empty value"),
    ],
)
def test_any_text_is_a_value(http: Http, key: str, value: str) -> None:
    http.ok("PUT", f"/v1/kv/n/{key}", {"value": value})
    assert http.ok("GET", f"/v1/kv/n/{key}")["value"] == value


def test_a_table_is_replaced_whole(http: Http) -> None:
    http.ok("PUT", "/v1/kv/n", {"table": {"a": "1", "b": "2"}})
    before = http.ok("GET", "/v1/events")["next"]
    assert http.ok("PUT", "/v1/kv/n", {"table": {"b": "2", "c": "3"}})["eventId"]
    assert http.ok("GET", "/v1/kv/n")["table"] == {"b": "2", "c": "3"}
    changed = [event["fields"] for event in http.ok("GET", f"/v1/events?after={before}")["events"]]
    assert [(event["key"], event["cause"]) for event in changed] == [("a", "delete"), ("c", "put")]
    assert len({event["op"] for event in changed}) == 1


def test_an_empty_table_makes_its_namespace(http: Http) -> None:
    assert http.ok("PUT", "/v1/kv/n", {"table": {}})["eventId"] is None
    assert http.ok("GET", "/v1/kv")["namespaces"] == ["n"]


def test_a_cleared_namespace_stays(http: Http) -> None:
    http.ok("PUT", "/v1/kv/n", {"table": {"a": "1", "b": "2"}})
    assert http.ok("DELETE", "/v1/kv/n?all=true")["eventId"]
    assert http.ok("GET", "/v1/kv/n")["table"] == {}


def test_settings_are_listed_as_java_lists_them(http: Http) -> None:
    listed = http.ok("GET", "/v1/settings")["settings"]
    assert list(listed) == sorted(listed)
    assert (listed["listenPort"], listed["enableTopicList"]) == ("9876", "true")
    assert not {"httpPort", "redisUrl", "tls.server.keyPassword"} & listed.keys()


@pytest.mark.parametrize(
    ("option", "given", "shown"),
    [
        pytest.param("orderMessageEnable", True, "true", id="flag"),
        pytest.param("orderMessageEnable", "TRUE", "true", id="flag as text"),
        pytest.param("waitSecondsForService", 7, "7", id="number"),
        pytest.param("waitSecondsForService", "7", "7", id="number as text"),
        pytest.param("serverSelectorThreads", 5, "5", id="one that is listed only"),
        pytest.param("productEnvName", " x ", "x", id="text"),
    ],
)
def test_settings_change_for_all(http: Http, option: str, given: object, shown: str) -> None:
    assert http.ok("PATCH", "/v1/settings", {"settings": {option: given}})["eventId"]
    assert http.ok("GET", "/v1/settings")["settings"][option] == shown
    assert http.ok("PATCH", "/v1/settings", {"settings": {option: given}})["eventId"] is None


@pytest.mark.parametrize(
    ("file", "at_start"), [("", "never"), ("/etc/namesrv.properties", "restart")], ids=["no -c", "-c"]
)
def test_the_answer_says_what_is_in_force(redis: redis_py.Redis, file: str, at_start: str) -> None:
    options = Options(rewritten_file=file, listing_also=(("myKey", "x"),))
    http = Http(create_app(options, redis=redis).test_client())
    settings = {"orderMessageEnable": True, "listenPort": 1, "serverSelectorThreads": 5, "myKey": "y"} | {
        "defaultThreadPoolQueueCapacity": 200
    }
    assert http.ok("PATCH", "/v1/settings", {"settings": settings})["inForce"] == {
        "orderMessageEnable": "live",
        "listenPort": at_start,
        "defaultThreadPoolQueueCapacity": at_start,
        "serverSelectorThreads": "never",
        "myKey": "never",
    }


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        pytest.param(
            {"kvConfigPath": "/tmp/x"}, (403, "settings-refused", "settings.kvConfigPath"), id="black list"
        ),
        pytest.param(
            {"rocketmqHome": "/"}, (403, "settings-refused", "settings.rocketmqHome"), id="always on it"
        ),
        pytest.param({"noOption": "1"}, (422, "invalid-field", "settings.noOption"), id="unknown"),
        pytest.param(
            {"listenPort": 99999999}, (422, "invalid-field", "settings.listenPort"), id="no such port"
        ),
        pytest.param(
            {"waitSecondsForService": -1},
            (422, "invalid-field", "settings.waitSecondsForService"),
            id="negative",
        ),
        pytest.param(
            {"waitSecondsForService": 1 << 31},
            (422, "invalid-field", "settings.waitSecondsForService"),
            id="over 32 bits",
        ),
        pytest.param(
            {"enableTopicList": "maybe"}, (422, "invalid-field", "settings.enableTopicList"), id="no flag"
        ),
        pytest.param({"httpPort": 1}, (422, "invalid-field", "settings.httpPort"), id="none that 318 sets"),
    ],
)
def test_settings_change_all_or_none(
    http: Http, wanted: dict[str, object], refusal: tuple[int, str, str | None]
) -> None:
    before = http.ok("GET", "/v1/settings")
    assert (
        http.refused("PATCH", "/v1/settings", {"settings": {"orderMessageEnable": True} | wanted}) == refusal
    )
    assert http.ok("GET", "/v1/settings") == before
