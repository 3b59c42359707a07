"""The exporter: `/metrics` of pods that have no HTTP side, beside the process that counts, over the folder of both.

It asks no store: facts of the store come from the HTTP workers. Which callers may scrape is the rule of all metrics."""

import json
import os
from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from access.classes import OPEN, AccessClass
from api.allowed_hosts import AllowedHosts
from api.gate import Asked, Denial, Gate
from api.problem_names import MEDIA_TYPE, title_of, type_of
from api.tokens import Tokens
from api.trusted_proxies import TrustedProxies
from metrics.exposition import CONTENT_TYPE, exposition
from registry.options.catalogue import Options
from registry.options.load import load

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["app", "exporter"]

PATHS: Final = {"/metrics": AccessClass.METRICS, "/healthz": OPEN}


def app(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Answer a scrape; `/healthz` says that this process answers."""
    return _of_process()(environ, start_response)


@cache
def _of_process() -> "WSGIApplication":
    return exporter(load(os.environ))


def exporter(options: Options) -> "WSGIApplication":
    """Return the application with the rules of these options. Raises InvalidOption."""
    gate = Gate(
        options, _count_nothing, Tokens(options.access_file, partial(_count_nothing, "config"), None), None
    )

    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path not in PATHS:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [f"no such path here; there are {', '.join(PATHS)}\n".encode()]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Content-Type", "text/plain"), ("Allow", "GET, HEAD")])
            return [b"GET only\n"]
        denial = gate.denial_of(environ, Asked(PATHS[path], f"GET {path}"))
        if denial is not None:
            return _refuse(denial, start_response)
        body = exposition() if path == "/metrics" else b"alive\n"
        kind = CONTENT_TYPE if path == "/metrics" else "text/plain"
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body if environ["REQUEST_METHOD"] == "GET" else b""]

    return AllowedHosts(TrustedProxies(answer, options), options)


def _count_nothing(operation: str, result: str) -> None:
    """The metrics of this process are none of those that it shows."""


def _refuse(denial: Denial, start_response: "StartResponse") -> Iterable[bytes]:
    status, title = denial.status, title_of(denial.status)
    document = {"type": type_of(denial.kind), "title": title, "status": status, "detail": denial.detail}
    start_response(f"{status} {title}", [("Content-Type", MEDIA_TYPE), *denial.headers.items()])
    return [json.dumps(document).encode() + b"\n"]
