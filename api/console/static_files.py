"""The files that pages load: the style sheet, our script, and htmx, which `static/vendor` has as its release does."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from flask import Response, request

from api.console.blueprint import bp
from api.console.page import HEADERS
from api.problems import Problem

__all__: list[str] = []

FILES: Final = {
    "console.css": "text/css",
    "live.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "vendor/htmx-4.0.1.min.js": "text/javascript",
}
"""Files and their media types."""
KEPT: Final = "no-cache"
"""A browser asks whether its copy is the present one."""


@bp.get("/static/<path:name>")
def static_file(name: str) -> Response:
    """A file that pages load"""
    if name not in FILES:
        raise Problem(404, "", "there is no such file")
    content, tag = _content(name)
    response = Response(content, headers={**HEADERS, "Cache-Control": KEPT}, mimetype=FILES[name])
    response.set_etag(tag)
    response.make_conditional(request)
    return response


@cache
def _content(name: str) -> tuple[bytes, str]:
    content = (Path(__file__).with_name("static") / name).read_bytes()
    return content, sha256(content).hexdigest()[:16]
