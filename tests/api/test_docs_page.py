"""The documentation page: it is whole without another host, in a real browser too."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fakeredis
import pytest
from flask import Flask
from werkzeug.serving import make_server

from api import docs_page
from api.app import create_app
from api.openapi import EXAMPLES
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from testbed.browser import Visit, visit
from tests.api.gunicorn import http_workers
from tests.api.http import Http

RENDERED = "--virtual-time-budget=10000"
"""The page is looked at when its scripts have nothing left to do, at most so many ms of the page's own time later."""


def opened(address: str, tmp_path: Path) -> Visit:
    return visit(f"http://{address}/docs", tmp_path / "profile", RENDERED)


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_browser_shows_every_operation_and_has_nothing_to_complain_of(
    store: EmbeddedStore, tmp_path: Path, host: str
) -> None:
    with http_workers(store.url) as address:
        page = opened(address.replace("127.0.0.1", host), tmp_path)
    assert page.console == ""
    assert [name for name in EXAMPLES if f">{name}<" not in page.dom] == []


@contextmanager
def served(app: Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.needs("chromium")
def test_a_browser_does_complain_of_what_another_host_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = fakeredis.FakeRedis(decode_responses=True)
    content = docs_page._content

    def with_an_image(name: str) -> tuple[bytes, str]:
        text, tag = content(name)
        return text.replace(b"<nav>", b"<nav><img src='http://elsewhere.example/x.png'>"), tag

    monkeypatch.setattr(docs_page, "_content", with_an_image)
    with served(create_app(Options(), redis=client)) as address:
        assert "elsewhere.example" in opened(address, tmp_path).console


def test_the_root_leads_to_the_page(quick: Http) -> None:
    reply = quick("GET", "/")
    assert (reply.status, reply.headers["Location"]) == (302, "docs")


def test_each_file_says_what_it_is_and_may_do(quick: Http) -> None:
    for name, media_type in {**docs_page.OURS, **docs_page.SWAGGER_UI}.items():
        reply = quick("GET", "/docs" if name == docs_page.HTML else f"/docs/{name}")
        assert (reply.status, reply.type) == (200, media_type)
        policy = reply.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "http" not in policy
        assert "unsafe" not in policy


def test_a_copy_that_is_the_present_one_is_not_sent_again(quick: Http) -> None:
    path = "/docs/swagger-ui-bundle.js"
    tag = quick("GET", path).headers["ETag"]
    assert quick("GET", path, headers={"If-None-Match": tag}).status == 304
    assert quick("GET", path, headers={"If-None-Match": '"another"'}).status == 200
