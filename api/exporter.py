"""The exporter: `/metrics` of pods that have no HTTP side, beside the process that counts, over the folder of both.

It asks no store: facts of the store come from the HTTP workers."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from api.allowed_hosts import AllowedHosts
from metrics.exposition import CONTENT_TYPE, exposition
from registry.options.load import load

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["app"]

PATHS: Final = ("/metrics", "/healthz")


def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Answer a scrape; `/healthz` says that this process answers."""
    path = environ["PATH_INFO"]
    if path not in PATHS:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [f"no such path here; there are {', '.join(PATHS)}\n".encode()]
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        start_response("405 Method Not Allowed", [("Content-Type", "text/plain"), ("Allow", "GET, HEAD")])
        return [b"GET only\n"]
    body = exposition() if path == "/metrics" else b"alive\n"
    kind = CONTENT_TYPE if path == "/metrics" else "text/plain"
    start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body if environ["REQUEST_METHOD"] == "GET" else b""]


app = AllowedHosts(answer, load(os.environ))
