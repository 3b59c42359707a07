"""Every option of a process over HTTP: its value, where that comes from, and what is shared."""

from typing import Any

import pytest
import redis as redis_py
from msgspec.structs import replace

from api.app import create_app
from registry.options.catalogue import CATALOGUE, SECRETS, Options, to_env
from registry.options.load import load, resolved
from tests.api.http import Http

FILE = {
    "listenPort": "19876",
    "orderMessageEnable": "true",
    "shutdownWaitTimeSeconds": "30",
    "lisenPort": "1",
}
ENVIRONMENT = {
    "HOME": "/home/mq",
    "ROCKETMQ_HOME": "/opt/mq",
    "REDIS_URL": "redis://me:secret@store/0",
    "MQNS_REDIS_PASSWORD": "secret",
    "MQNS_HTTP_PORT": "0",
    "MQNS_LISTN_PORT": "1",
}


@pytest.fixture
def given() -> Options:
    """Options as a child has them from its supervisor."""
    return load(to_env(resolved(FILE, ENVIRONMENT, {"configStorePath": "/etc/n.properties"})))


@pytest.fixture
def http(redis: redis_py.Redis, given: Options) -> Http:
    return Http(create_app(given, redis=redis).test_client())


def rows(http: Http, query: str = "") -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in http.ok("GET", f"/v1/options{query}")["options"]}


def test_every_option_is_there_with_what_it_is(http: Http) -> None:
    listed = rows(http)
    assert list(listed) == [option.key for option in CATALOGUE]
    assert [key for key, row in listed.items() if not row["description"]] == []
    assert listed["listenPort"] == {
        "key": "listenPort",
        "variable": "MQNS_LISTEN_PORT",
        "value": "19876",
        "default": "9876",
        "source": "file",
        "effect": "restart",
        "description": "port of the remoting side; 0 lets the system choose",
        "shared": None,
        "differs": False,
    }
    assert {row["effect"] for row in listed.values()} == {"live", "restart", "listed"}


@pytest.mark.parametrize(
    ("key", "value", "source"),
    [
        ("serverSocketBacklog", "1024", "default"),
        ("listenPort", "19876", "file"),
        ("shutdownWaitTimeSeconds", "30", "file"),
        ("httpPort", "0", "environment"),
        ("redisUrl", "redis://me:***@store/0", "environment"),
        ("rqRedisUrl", "redis://me:***@store/0", "computed"),
        ("redisPassword", "***", "environment"),
        ("rocketmqHome", "/opt/mq", "environment"),
        ("kvConfigPath", "/home/mq/namesrv/kvConfig.json", "computed"),
        ("httpBindAddress", "127.0.0.1", "default"),
        ("configStorePath", "/etc/n.properties", "command line"),
    ],
)
def test_where_a_value_comes_from(http: Http, key: str, value: str, source: str) -> None:
    row = http.ok("GET", f"/v1/options/{key}")
    assert (row["value"], row["source"]) == (value, source)
    assert row == rows(http)[key] | {"sharedKnown": True}


@pytest.mark.parametrize(
    ("key", "text", "value", "source", "differs"),
    [
        pytest.param("enableTopicList", "false", "false", "shared", False, id="live"),
        pytest.param("orderMessageEnable", "false", "false", "shared", False, id="live, over the file's"),
        pytest.param("orderMessageEnable", "true", "true", "file", False, id="live, as the file has it"),
        pytest.param("listenPort", "1", "19876", "file", True, id="of the start"),
        pytest.param("serverSelectorThreads", "5", "3", "default", True, id="listed only"),
        pytest.param("waitSecondsForService", "-1", "45", "default", True, id="out of range"),
    ],
)
def test_what_is_shared(
    http: Http, redis: redis_py.Redis, key: str, text: str, value: str, source: str, differs: bool
) -> None:
    redis.hset("ns:{default}:settings", key, text)
    row = http.ok("GET", f"/v1/options/{key}")
    assert (row["value"], row["source"], row["shared"], row["differs"]) == (value, source, text, differs)
    assert (key in rows(http, "?changed=true")) == (source != "default" or differs)


def test_those_that_are_not_as_by_default(http: Http) -> None:
    """A file that says what the default is has no part in it."""
    assert sorted(rows(http, "?changed=true")) == [
        *("configStorePath", "httpPort", "listenPort", "orderMessageEnable"),
        *("redisPassword", "redisUrl", "rocketmqHome"),
    ]


@pytest.mark.parametrize("key", sorted(SECRETS))
def test_secrets_are_not_shown(redis: redis_py.Redis, given: Options, key: str) -> None:
    """Not even where another program wrote one into Redis."""
    redis.hset("ns:{default}:settings", key, "secret")
    http = Http(create_app(replace(given, tls_server_key_password="secret"), redis=redis).test_client())
    assert http.ok("GET", f"/v1/options/{key}")["shared"] == "***"
    assert "secret" not in str(http.ok("GET", "/v1/options"))


def test_what_has_no_effect(http: Http) -> None:
    assert http.ok("GET", "/v1/options?changed=true")["unknown"] == [
        "lisenPort is no option and has no effect; did you mean listenPort?",
        "MQNS_LISTN_PORT is no option and has no effect; did you mean MQNS_LISTEN_PORT?",
    ]


def test_bad_requests(http: Http) -> None:
    assert http.refused("GET", "/v1/options/listenport") == (404, "option-not-found", None)
    assert "did you mean listenPort?" in http("GET", "/v1/options/listenport").json["detail"]
    assert "docs/options.md" in http("GET", "/v1/options/%1B%00").json["detail"]
    assert http.refused("GET", "/v1/options?changed=maybe") == (422, "invalid-field", "changed")
    assert http.refused("GET", "/v1/options?limit=1") == (422, "invalid-field", "limit")


def test_without_a_store(storeless: Http, http: Http) -> None:
    """What the process was given is known; what is shared is not, and that is said."""
    away, there = storeless.ok("GET", "/v1/options"), http.ok("GET", "/v1/options")
    assert (away["sharedKnown"], there["sharedKnown"]) == (False, True)
    assert [row["key"] for row in away["options"]] == [option.key for option in CATALOGUE]
    assert {row["shared"] for row in away["options"]} == {None}
    one = storeless.ok("GET", "/v1/options/listenPort")
    assert (one["value"], one["source"], one["shared"], one["sharedKnown"]) == (
        "9876",
        "default",
        None,
        False,
    )
    assert http.ok("GET", "/v1/options/listenPort")["sharedKnown"] is True
    assert storeless.refused("GET", "/v1/options/x") == (404, "option-not-found", None)
