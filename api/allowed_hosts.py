"""Requests whose `Host` is no name of this name server are refused, before anything else of them is looked at.

A page of another site may have its own name resolve to the address of this server (DNS rebinding): the browser then
takes both for one site, and lets the page read and write here. What it cannot forge is the name that it asks for."""

import json
import logging
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from api.problem_names import MEDIA_TYPE, title_of, type_of
from registry.options.catalogue import Options
from registry.options.host_names import is_listed, names_of, without_case
from registry.options.networks import address_of
from worker.logs.rate_limited_log import RateLimitedLog

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["AllowedHosts", "own_names"]

STATUS: Final = 400
KIND: Final = "host-not-allowed"
AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]*\]|[A-Za-z0-9._-]*)(:[0-9]*)?")
HOSTS_FILE: Final = Path("/etc/hosts")
SHOWN_MOST: Final = 100
"""Characters of a refused name in the log and in the answer."""

log = RateLimitedLog(logging.getLogger(__name__))


class AllowedHosts:
    """Hands an application the requests for an address, `localhost`, this machine or a name of httpAllowedHosts.

    `refused` is called with the status of each other one. One without Host is answered: browsers always send it, and
    health checks of HTTP/1.0 do not."""

    def __init__(
        self,
        application: "WSGIApplication",
        options: Options,
        refused: Callable[[int], object] = lambda status: None,
    ) -> None:
        self._application = application
        self._refused = refused
        self._names = names_of(options.http_allowed_hosts) | {"localhost"} | own_names()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request."""
        host = environ.get("HTTP_HOST", "")
        if not host or self._allows(host):
            return self._application(environ, start_response)
        self._refused(STATUS)
        log.warning(
            "a request over HTTP from %s for the host %a was refused; if that is a name of this server, add it to "
            "httpAllowedHosts",
            environ.get("REMOTE_ADDR", ""),
            host[:SHOWN_MOST],
        )
        body = _problem(host)
        headers = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body)))]
        start_response(f"{STATUS} {title_of(STATUS)}", headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]

    def _allows(self, host: str) -> bool:
        match = AUTHORITY.fullmatch(host)
        if match is None:
            return False
        name = without_case(match["host"])
        return address_of(name) is not None or is_listed(name, self._names)


def own_names(hosts_file: Path = HOSTS_FILE) -> frozenset[str]:
    """Return the name of this machine, and the longer ones that its file of hosts has for it.

    DNS is not asked, which may take long, and may answer what others want."""
    own = without_case(socket.gethostname())
    try:
        text = hosts_file.read_text(errors="replace")
    except OSError:
        text = ""
    names = {without_case(word) for line in text.splitlines() for word in line.partition("#")[0].split()[1:]}
    return frozenset({own, *(name for name in names if name.startswith(f"{own}."))}) - {""}


def _problem(host: str) -> bytes:
    detail = (
        f"{host[:SHOWN_MOST]!a} is no name of this name server; set httpAllowedHosts (MQNS_HTTP_ALLOWED_HOSTS) if it "
        "is to be one, or ask by an address"
    )
    document = {"type": type_of(KIND), "title": title_of(STATUS), "status": STATUS, "detail": detail}
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
