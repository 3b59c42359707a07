"""Writes that a browser sends for a page of another site are refused, whatever proof of identity they bear.

A browser says from where a page came: in `Sec-Fetch-Site` (Fetch Metadata), older ones in `Origin` alone (RFC 6454).
No answer has a header of CORS, so that pages of other sites can read none either."""

from typing import Final

from flask import Flask, request

from api.methods import SAFE
from api.problems import Problem

__all__ = ["install", "is_own"]

FOREIGN: Final = frozenset({"cross-site", "same-site"})
"""`same-site` is a page of another host of the same domain, or of another port."""
PORTS: Final = {"http": 80, "https": 443}


def install(app: Flask) -> None:
    """Have an application refuse writes of pages of other sites."""

    @app.before_request
    def refuse_cross_site() -> None:
        if request.method in SAFE:
            return
        headers = request.headers
        origin = headers.get("Origin")
        if headers.get("Sec-Fetch-Site") in FOREIGN or (
            origin is not None and not is_own(origin, headers.get("Host", ""))
        ):
            detail = (
                "a page of another site sent this, from which nothing is changed here; send it from a script"
            )
            raise Problem(403, "cross-site", detail)


def is_own(origin: str, host: str) -> bool:
    """Return whether an Origin names the host and port of a Host; both leave out the port that the scheme has."""
    scheme, _, authority = origin.partition("://")
    port = f":{PORTS.get(scheme)}"
    return scheme in PORTS and host != "" and _without(authority, port) == _without(host, port)


def _without(authority: str, port: str) -> str:
    return authority.lower().removesuffix(port)
