"""Answers that are compressed, for clients that accept it."""

import gzip
import json
import os
from typing import Any

import pytest
from flask import Flask, Response

from api import compression
from tests.api.gunicorn import curl, http_workers
from tests.api.http import Http

VALUE = "/v1/kv/n/k"
LONG = {"value": "x" * 2000}
GZIP = {"Accept-Encoding": "gzip"}


def raw(http: Http, path: str, method: str = "GET", **headers: str) -> Any:
    return http.client.open(
        path, method=method, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


@pytest.mark.parametrize("path", ["/openapi.json", "/v1/options"])
def test_a_long_answer_is_compressed(quick: Http, path: str) -> None:
    plain, packed, again = (
        raw(quick, path),
        raw(quick, path, Accept_Encoding="gzip"),
        raw(quick, path, Accept_Encoding="gzip"),
    )
    assert gzip.decompress(packed.data) == plain.data
    assert packed.data == again.data
    assert (packed.headers["Content-Encoding"], packed.mimetype) == ("gzip", "application/json")
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data) / 3
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("gzip, deflate, br, zstd", True),
        ("gzip;q=0.001", True),
        ("*", True),
        ("gzip;q=1.0, identity;q=0.5", True),
        ("gzip;q=0.5, identity;q=1", False),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("*;q=0", False),
        ("br", False),
        ("identity", False),
        ("", False),
        ("gzip;q=x", False),
    ],
)
def test_clients_say_what_they_prefer(quick: Http, accepted: str, packed: bool) -> None:
    reply = raw(quick, "/openapi.json", Accept_Encoding=accepted)
    assert (reply.headers.get("Content-Encoding") == "gzip") is packed
    assert json.loads(gzip.decompress(reply.data) if packed else reply.data)


def test_a_short_answer_and_an_error_are_not(quick: Http) -> None:
    for path, status in (("/healthz", 200), (f"/v1/options/{'x' * 2000}", 404)):
        reply = raw(quick, path, Accept_Encoding="gzip")
        assert (reply.status_code, reply.headers.get("Content-Encoding")) == (status, None)
        assert reply.headers["Vary"] == "Accept-Encoding"


def test_the_head_is_that_of_the_answer(quick: Http) -> None:
    whole, head = (raw(quick, "/openapi.json", method, Accept_Encoding="gzip") for method in ("GET", "HEAD"))
    assert head.data == b""
    assert dict(head.headers) == dict(whole.headers)


def test_a_compressed_answer_has_a_tag_of_its_own(quick: Http) -> None:
    quick.ok("PUT", VALUE, LONG)
    plain, packed = raw(quick, VALUE).headers["ETag"], raw(quick, VALUE, **GZIP).headers["ETag"]
    assert packed == f'{plain[:-1]}-gzip"'
    for accepted, own, other in (("gzip", packed, plain), ("identity", plain, packed)):
        unmodified = raw(quick, VALUE, Accept_Encoding=accepted, If_None_Match=own)
        assert (unmodified.status_code, unmodified.data) == (304, b"")
        assert (unmodified.headers["ETag"], unmodified.headers["Vary"]) == (own, "Accept-Encoding")
        assert "Content-Encoding" not in unmodified.headers
        assert raw(quick, VALUE, Accept_Encoding=accepted, If_None_Match=other).status_code == 200
    assert quick("PUT", VALUE, {"value": "y"}, headers=GZIP | {"If-Match": packed}).status == 200


def test_what_is_streamed_or_encoded_is_left_as_it_is() -> None:
    app = Flask("answers")
    compression.install(app)
    app.add_url_rule("/streamed", view_func=lambda: Response(iter([b"x" * 999, b"x" * 999])))
    packed = gzip.compress(os.urandom(2000))
    app.add_url_rule("/packed", "packed", lambda: Response(packed, headers={"Content-Encoding": "gzip"}))
    client = app.test_client()
    streamed = client.get("/streamed", headers=GZIP)
    assert ("Content-Encoding" in streamed.headers, streamed.data) == (False, b"x" * 1998)
    assert client.get("/packed", headers=GZIP).data == packed


@pytest.mark.needs("curl")
def test_a_scrape_is_compressed(store: Any) -> None:
    with http_workers(store.url, workers=1) as address:
        seen = curl(
            "-D", "-", "-o", "/dev/null", "-H", "Accept-Encoding: gzip;q=1.0, *;q=0.5", f"{address}/metrics"
        )
        assert "content-encoding: gzip" in seen[1].lower()
        status, body = curl("--compressed", f"{address}/metrics")
        assert (status, body.startswith("# HELP")) == (200, True)
