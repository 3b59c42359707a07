"""What pages of other sites do to the HTTP side in a real browser; AC-38."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest

from mqnamesrv.store import EmbeddedStore
from testbed.browser import visit
from tests.api.gunicorn import http_workers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

SETTLED = "--virtual-time-budget=10000"
FORM = """<!doctype html><html><body onload="document.forms[0].submit()">
<form method="post" action="http://%s/v1/events/checkpoints"></form></body></html>"""


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def site(page: str) -> Iterator[str]:
    """Yield the address of another site, all of whose pages are this one."""

    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return [page.encode()]

    with make_server("127.0.0.1", 0, answer, handler_class=Silent) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.needs("chromium")
def test_a_foreign_name_that_resolves_to_the_server_reads_nothing(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    """DNS rebinding: to the browser, page and server are one site."""
    as_evil = ("--host-resolver-rules=MAP evil.example 127.0.0.1", "--proxy-bypass-list=evil.example")
    with http_workers(store.url, 1) as address:
        port = address.rpartition(":")[2]
        page = visit(f"http://evil.example:{port}/v1/options", tmp_path / "profile", SETTLED, *as_evil)
    assert "host-not-allowed" in page.dom
    assert "redisUrl" not in page.dom


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_form_of_another_site_changes_nothing(store: EmbeddedStore, tmp_path: Path, host: str) -> None:
    """From another host (cross-site), and from another port of the same one (same-site)."""
    with http_workers(store.url, 1) as address, site(FORM % address) as other:
        url = f"http://{other.replace('127.0.0.1', host)}/"
        page = visit(url, tmp_path / "profile", SETTLED)
        assert "urn:redis-namesrv:cross-site" in page.dom
        audit = httpx.get(f"http://{address}/v1/audit", trust_env=False).json()
    assert audit["events"] == []
