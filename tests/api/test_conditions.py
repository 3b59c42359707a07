"""ETags of KV values, and reads and writes under conditions."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry import kv
from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from tests.api.gunicorn import http_workers
from tests.api.http import Http, Reply

VALUE = "/v1/kv/n/k"
ANOTHER = '"1-1.0"'
WRITERS, ROUNDS = 8, 15


def ask(http: Http, method: str, path: str, body: object = None, **headers: str) -> Reply:
    return http(method, path, body, headers={name.replace("_", "-"): text for name, text in headers.items()})


def put(http: Http, text: str, **headers: str) -> int:
    return ask(http, "PUT", VALUE, {"value": text}, **headers).status


def etag(http: Http) -> str:
    return http("GET", VALUE).headers["ETag"]


def entries(http: Http) -> int:
    return sum(event["kind"] == "kv_changed" for event in http.ok("GET", "/v1/events")["events"])


def test_a_tag_is_strong_and_of_one_state(http: Http) -> None:
    tags = []
    for text in ("a", "b", "a"):
        put(http, text)
        tags.append(etag(http))
    http.ok("DELETE", VALUE)
    put(http, "a")
    tags.append(etag(http))
    assert len(set(tags)) == 4
    assert all(tag.startswith('"') for tag in tags)
    put(http, "a")
    assert etag(http) == tags[-1]


def test_a_change_by_the_wire_and_by_an_older_release_is_one(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    """The older one notes no id of the change."""
    put(http, "a")
    first = etag(http)
    run(kv.put(keys, "n", "k", "b", Origin("w1-1", "wire:1.1.1.1:1")), redis)
    second = etag(http)
    redis.hset(keys.kv("n"), "k", "c")
    assert len({first, second, etag(http)}) == 3
    redis.set(f"{keys.prefix}kv_versions:n", "of another type")
    assert put(http, "d", If_Match=etag(http)) == 200
    assert etag(http).startswith(f'"{redis.hget(f"{keys.prefix}kv_versions:n", "k")!s}.')


def test_a_value_that_the_client_has_is_not_sent_again(http: Http) -> None:
    put(http, "a")
    tag = etag(http)
    for method in ("GET", "HEAD"):
        for listed in (tag, f"W/{tag}", f"{ANOTHER}, {tag}", "*"):
            reply = ask(http, method, VALUE, If_None_Match=listed)
            assert (reply.status, reply.headers["ETag"], reply.json) == (304, tag, None)
            assert "Content-Length" not in reply.headers
    assert ask(http, "GET", VALUE, If_None_Match=ANOTHER).status == 200
    put(http, "b")
    assert ask(http, "GET", VALUE, If_None_Match=tag).json["value"] == "b"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize(
    ("header", "holds"),
    [
        pytest.param("If-Match: TAG", True, id="its tag"),
        pytest.param(f"If-Match: {ANOTHER} ,, TAG", True, id="one of its tags"),
        pytest.param('If-Match: "INNER-gzip"', True, id="its tag when compressed"),
        pytest.param("If-Match: *", True, id="any tag"),
        pytest.param(f"If-Match: {ANOTHER}", False, id="another tag"),
        pytest.param("If-Match: W/TAG", False, id="a weak tag"),
        pytest.param('If-Match: "*"', False, id="an asterisk that is a tag"),
        pytest.param(f"If-None-Match: {ANOTHER}", True, id="not another tag"),
        pytest.param("If-None-Match: TAG", False, id="not its tag"),
        pytest.param("If-None-Match: W/TAG", False, id="not its tag, weak"),
        pytest.param("If-None-Match: *", False, id="not any tag"),
    ],
)
def test_a_condition_on_a_value(http: Http, method: str, header: str, holds: bool) -> None:
    put(http, "a")
    tag, before = etag(http), entries(http)
    name, _, text = header.replace("INNER", tag.strip('"')).replace("TAG", tag).partition(": ")
    reply = http(method, VALUE, {"value": "b"} if method == "PUT" else None, headers={name: text})
    assert entries(http) - before == holds
    if holds:
        assert reply.status == 200
    else:
        assert (reply.status, reply.type) == (412, "application/problem+json")
        assert (reply.headers["ETag"], reply.json["etag"]) == (tag, tag)
        assert reply.json["type"] == "urn:redis-namesrv:condition-failed"
        assert http.ok("GET", VALUE)["value"] == "a"


def test_conditions_where_there_is_no_value(http: Http) -> None:
    for listed in ("*", ANOTHER):
        refused = ask(http, "PUT", VALUE, {"value": "a"}, If_Match=listed)
        assert (refused.status, refused.json.get("etag"), refused.headers.get("ETag")) == (412, None, None)
        assert ask(http, "DELETE", VALUE, If_Match=listed).status == 404
        assert ask(http, "GET", VALUE, If_Match=listed).status == 404
    assert http.ok("GET", "/v1/kv")["namespaces"] == []
    assert put(http, "a", If_None_Match="*") == 200
    assert put(http, "b", If_None_Match="*") == 412
    assert http.ok("GET", VALUE)["value"] == "a"


def test_a_read_of_another_state_than_wanted(http: Http) -> None:
    put(http, "a")
    assert ask(http, "GET", VALUE, If_Match=etag(http)).status == 200
    assert ask(http, "GET", VALUE, If_Match=ANOTHER).status == 412


@pytest.mark.parametrize("text", ["", "tag", '"a" "b"', '"a', '*, "a"', 'w/"a"', '"a b"', "W/", ","])
@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
def test_what_is_no_list_of_tags(quick: Http, name: str, text: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        body = {"value": "a"} if method == "PUT" else None
        reply = quick(method, VALUE, body, headers={name: text})
        assert (reply.status, reply.json.get("field")) == (422, name)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/kv/n", {"table": {}}),
        ("PATCH", "/v1/settings", {"settings": {}}),
        ("PUT", "/v1/topics/T", {"queueDatas": []}),
        ("PUT", "/v1/brokers/b/drain", {"owner": "o", "reason": "r"}),
        ("DELETE", "/v1/topics/T", None),
    ],
)
@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
def test_a_condition_is_not_ignored(quick: Http, method: str, path: str, body: object, name: str) -> None:
    reply = quick(method, path, body, headers={name: "*"})
    assert (reply.status, reply.json["field"]) == (400, name)
    assert reply.json["type"] == "urn:redis-namesrv:condition-not-supported"


def test_a_read_without_tags_is_answered_whole(quick: Http) -> None:
    assert ask(quick, "GET", "/v1/topics", If_None_Match=ANOTHER).status == 200
    assert ask(quick, "GET", "/v1/topics", If_Match=ANOTHER).status == 400
    assert ask(quick, "GET", "/v1/nothing", If_Match=ANOTHER).status == 404


def test_parameters_are_refused_as_elsewhere(quick: Http) -> None:
    assert quick.refused("DELETE", f"{VALUE}?all=true") == (422, "invalid-field", "all")


class Client:
    """A connection to one HTTP worker: the kernel gives new ones to either."""

    def __init__(self, address: str, path: str) -> None:
        self.connection = http.client.HTTPConnection(address, timeout=30)
        self.path = path

    def __call__(self, method: str, body: object = None, **headers: str) -> tuple[int, str, Any]:
        headers = {name.replace("_", "-"): text for name, text in headers.items()}
        encoded = None if body is None else json.dumps(body)
        self.connection.request(
            method, self.path, encoded, {"Content-Type": "application/json", "Connection": "close", **headers}
        )
        reply = self.connection.getresponse()
        return reply.status, reply.headers.get("ETag", ""), json.loads(reply.read())

    def increment(self) -> int:
        """Add one to the number, and return how many attempts it took."""
        for attempt in range(1, 10_000):
            _, tag, read = self("GET")
            status, _, written = self("PUT", {"value": str(int(read["value"]) + 1)}, If_Match=tag)
            if status == 200:
                return attempt
            assert (status, written["etag"] != tag) == (412, True)
        raise AssertionError("no attempt was successful")


def test_no_increment_is_lost(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    """Read and compare-and-set by many, each request at whichever of two workers takes it."""
    with http_workers(store.url) as address:
        path = f"/v1/kv/{quote('a/b', safe='')}/{quote('%RETRY%/k', safe='')}"
        assert Client(address, path)("PUT", {"value": "0"}, If_None_Match="*")[0] == 200

        def write(_: int) -> int:
            client = Client(address, path)
            return sum(client.increment() for _ in range(ROUNDS))

        with ThreadPoolExecutor(WRITERS) as threads:
            attempts = sum(threads.map(write, range(WRITERS)))
        _, _, read = Client(address, path)("GET")
    assert read["value"] == str(WRITERS * ROUNDS)
    assert attempts > WRITERS * ROUNDS
    assert (
        redis.xlen(Keys().events) == WRITERS * ROUNDS + 2
    )  # the first value, and the entry that begins the stream
