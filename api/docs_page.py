"""The documentation page: Swagger UI with the OpenAPI document, all of it from this server.

Its scripts are those of the package flask-swagger-ui, which follows Swagger UI's releases week by week; other packages
with them are years behind, or have the browser load them from elsewhere."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

from apiflask import APIBlueprint
from flask import Response, request

from api.problems import Problem

bp = APIBlueprint("docs", __name__, enable_openapi=False)

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""Nothing is loaded from another host, none is asked, and no other page shows this one; browsers ask whether their copy
is the present one."""
HTML: Final = "page.html"
OURS: Final = {HTML: "text/html", "page.css": "text/css", "start.js": "text/javascript"}
SWAGGER_UI: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}
"""Files and their media types."""


@bp.get("/")
def index() -> Response:
    """To the documentation; relative, as all links of the page, so that they lead on behind any proxy"""
    return Response(status=302, headers={"Location": "docs"})


@bp.get("/docs")
def docs() -> Response:
    """The documentation, for people"""
    return _file(HTML)


@bp.get("/docs/<name>")
def docs_file(name: str) -> Response:
    """A file that the page loads"""
    if name == HTML or name not in OURS | SWAGGER_UI:
        raise Problem(404, "", "no such path here")
    return _file(name)


def _file(name: str) -> Response:
    content, tag = _content(name)
    response = Response(content, headers=HEADERS, mimetype=(OURS | SWAGGER_UI)[name])
    response.set_etag(tag)
    response.make_conditional(request)
    return response


@cache
def _content(name: str) -> tuple[bytes, str]:
    """Return a file, 2 MB at most, and its entity tag."""
    ours = Path(__file__).with_name("docs_files") / name
    content = (ours if name in OURS else files("flask_swagger_ui") / "dist" / name).read_bytes()
    return content, sha256(content).hexdigest()[:16]
