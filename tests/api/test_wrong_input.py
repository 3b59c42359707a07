"""All kinds of wrong requests to all operations: each is refused in this API's words, none of a library's."""

import re
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

import fakeredis
import pytest
from pydantic_core._pydantic_core import list_all_errors
from werkzeug.exceptions import default_exceptions

from api.app import create_app
from api.openapi import EXAMPLES
from api.wrong_input import OF_STATUS, OF_TYPE
from registry.options.catalogue import Options
from tests.api.http import PROBLEM, Http

VALUES: tuple[Any, ...] = (None, True, -1, 1.5, 2**31, 2**70, "", "no\n", "x" * 2000, [], {}, [1], {"a": 1})
TEXTS = ("", "x", "x" * 1001, "-1", "1.5", "1001", "9" * 30, "9" * 4000, "yesterday", "2026-11-28T10:00:00")
BROKEN = (b"", b"{", b"'", b'{"a":1}}', b'"\xff"', b'"\\ud800"', b"[" * 9999, b"1e999", b"NaN", b"null")
TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml")
OF_OTHERS = ("/v1/history/", "/rocketmq/")
"""Paths of which other processes have the answers: 503 where there are none."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW")
OF_LIBRARIES = [
    *(str(error["message_template_python"]) for error in list_all_errors()),
    *(str(error.description) for error in default_exceptions.values() if error.description),
    *("Not a valid", "Missing data", "Unknown field", "Invalid input", "Expected `", "JSON is malformed"),
    *("Input data was truncated", "maximum recursion depth", "codec can't decode", "Number out of range"),
    *("type_error", "value_error", "Traceback", "pydantic", "werkzeug"),
]
"""Texts of pydantic, Werkzeug, webargs, marshmallow, msgspec and Python, with what varies in braces."""
DEFAULT = re.compile(
    "|".join(re.sub(r"\\{\w+\\}", ".+", re.escape(text)) for text in OF_LIBRARIES if text != "{error}")
)


class Wrong(NamedTuple):
    """A request that may be wrong."""

    method: str
    path: str
    sent: dict[str, Any]


def changed(value: Any) -> Iterator[Any]:
    """Yield the JSON value with one of its values replaced, one left out, or one more, at any depth."""
    yield from VALUES
    if isinstance(value, dict):
        yield value | {"colour": "red"}
        for name, member in value.items():
            yield {other: value[other] for other in value if other != name}
            yield from (value | {name: other} for other in changed(member))
    if isinstance(value, list) and value:
        yield from ([*value[:-1], other] for other in changed(value[-1]))


def wrong_parameters(operation: Any) -> Iterator[dict[str, Any]]:
    """Yield parameters of which one is wrong, missing or unknown."""
    right = {
        parameter["name"]: parameter["example"]
        for parameter in operation["parameters"]
        if parameter["in"] == "query" and "example" in parameter
    }
    yield right | {"colour": "red"}
    for parameter in operation["parameters"]:
        if parameter["in"] == "query":
            yield {name: right[name] for name in right if name != parameter["name"]}
            yield from (right | {parameter["name"]: text} for text in TEXTS)


def wrong_bodies(body: Any) -> Iterator[dict[str, Any]]:
    """Yield what a client may send in place of a body, as options of the client."""
    yield from ({"json": value} for value in changed(body))
    yield from ({"data": text, "content_type": "application/json"} for text in BROKEN)
    yield from ({"data": b"{}", "content_type": name} for name in TYPES)
    yield {}


def wrong_requests(spec: Any) -> Iterator[Wrong]:
    for template, methods in spec["paths"].items():
        for method, operation in methods.items():
            example = EXAMPLES[operation["operationId"]]
            path = template
            for name, value in example.parameters.items():
                path = path.replace(f"{{{name}}}", str(value))
            query = urlencode({n: v for n, v in example.parameters.items() if f"{{{n}}}" not in template})
            for parameters in wrong_parameters(operation):
                sent = {} if example.body is None else {"json": example.body}
                yield Wrong(method.upper(), f"{path}?{urlencode(parameters)}", sent)
            if example.body is not None:
                yield from (Wrong(method.upper(), path, sent) for sent in wrong_bodies(example.body))
            yield from (
                Wrong(other, f"{path}?{query}", {"json": {}})
                for other in METHODS
                if other.lower() not in methods
            )
        yield Wrong("GET", f"{path}/%FF", {})
        yield Wrong("GET", f"{path}//", {})


@pytest.fixture(scope="module")
def without_queue() -> Iterator[Http]:
    """Yield a client over a fake store, for which no process of the pipeline answers."""
    client: Any = fakeredis.FakeRedis(decode_responses=True)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{bound.getsockname()[1]}"
        options = Options(rq_redis_url=url, discovery_address="10.0.0.1:9876")
        yield Http(create_app(options, redis=client).test_client())


@pytest.fixture(scope="module")
def details(without_queue: Http) -> set[str]:
    """Return what all wrong requests were answered with; each is a complete problem document."""
    seen = set()
    for request in wrong_requests(without_queue.ok("GET", "/openapi.json")):
        reply = without_queue(request.method, request.path, **request.sent)
        if reply.status < 400 or (reply.status == 503 and request.path.startswith(OF_OTHERS)):
            continue
        assert (reply.type, reply.json["status"]) == (PROBLEM, reply.status), request
        assert reply.status < 500, (request, reply)
        detail = reply.json["detail"]
        if reply.status == 422:
            assert detail.startswith(f"{reply.json['field']}: "), (request, reply)
        seen.add(detail)
    return seen


def test_no_text_of_a_library_is_answered(details: set[str]) -> None:
    assert len(details) > 200
    assert [detail for detail in details if DEFAULT.search(detail)] == []


def test_each_of_the_words_is_answered(details: set[str]) -> None:
    """So none is of an error that cannot happen."""
    words = {
        text: re.compile(": " + re.sub(r"\\{\w+\\}", ".+", re.escape(text)) + "$")
        for text in OF_TYPE.values()
    }
    assert [text for text, pattern in words.items() if not any(map(pattern.search, details))] == []
    assert set(OF_STATUS.values()) - details <= {OF_STATUS[400], OF_STATUS[413]}


def test_a_body_that_is_too_large() -> None:
    client: Any = fakeredis.FakeRedis(decode_responses=True)
    small = Http(create_app(Options(http_body_max_bytes=100), redis=client).test_client())
    reply = small("PUT", "/v1/kv/n/k", {"value": "v" * 100})
    assert (reply.status, reply.json["detail"]) == (413, OF_STATUS[413])


def test_texts_of_libraries_are_known_when_they_are_seen() -> None:
    for text in (
        "limit: Field required",
        "a: Input should be a valid string",
        "x: Extra inputs are not permitted",
    ):
        assert DEFAULT.search(text)


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        ("GET", "/v1/brokers?limit=0", None, "limit: has to be at least 1"),
        ("GET", "/v1/brokers?limit=many", None, "limit: has to be a whole number"),
        ("GET", "/v1/events?order=newest", None, "order: has to be 'asc' or 'desc'"),
        ("GET", "/v1/events?after=1", None, "after: not the id of an entry, such as 1795255839125-0"),
        ("GET", "/v1/brokers?colour=red", None, "colour: no such parameter here"),
        ("PUT", "/v1/kv/n/k", {}, "value: is required"),
        ("PUT", "/v1/kv/n/k", {"value": 1}, "value: has to be text"),
        ("PUT", "/v1/kv/n/k", {"value": "v", "colour": "red"}, "colour: no such member here"),
        ("PUT", "/v1/kv/n/k", [], "body: has to be an object"),
        ("POST", "/v1/clusters", {}, "the path does not take POST, but GET, HEAD, OPTIONS"),
    ],
)
def test_what_is_expected_is_said(quick: Http, method: str, path: str, body: object, detail: str) -> None:
    assert quick(method, path, body).json["detail"] == detail
