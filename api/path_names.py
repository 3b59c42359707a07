"""Names in a path: any text, for each part of the path is decoded by itself, after the route is found.

WSGI servers decode a path as a whole, so that `%2F` in a name would part it. A part that begins with `=` is the name
behind it: so an empty name has a part, and `..` one that no client or proxy takes out."""

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, unquote_to_bytes

from werkzeug.routing import BaseConverter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LITERAL: Final = "="
UNRESERVED: Final = re.compile("%(2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)", re.IGNORECASE)
"""Letters, digits, `-` `.` `_` `~`: the same whether they are encoded (RFC 3986 section 2.3)."""


def decoded(part: str) -> str:
    """Return the name that a part of a path spells."""
    return unquote(part.removeprefix(LITERAL))


def encoded(name: str) -> str:
    """Return the part of a path that spells a name; behind `=` only where it would be another one without."""
    part = quote(name, safe="")
    return f"{LITERAL}{part}" if name in ("", ".", "..") else part


def unreadable(path: str) -> str | None:
    """Return the first part of an application's path (as WSGI has it) that is no UTF-8, as it was sent; else None."""
    for part in path.split("/"):
        try:
            unquote_to_bytes(part.encode("latin-1")).decode()
        except UnicodeDecodeError:
            return quote(part, safe="%=", encoding="latin-1")
    return None


class Name(BaseConverter):
    """A part of a path that is a name."""

    regex = "[^/]+"

    def to_python(self, value: str) -> Any:
        """Called by Werkzeug with the part as it was sent."""
        return decoded(value)

    def to_url(self, value: Any) -> str:
        """Called by Werkzeug for a path to a name."""
        return LITERAL + quote(str(value), safe="")


class Key(Name):
    """The rest of a path that is a name, in which `/` may stand as it is."""

    part_isolating = False
    regex = "[^/].*"


class RawPaths:
    """Hands an application paths as they were sent."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Called for each request."""
        if "RAW_URI" in environ:
            path = raw_path(environ["RAW_URI"]).removeprefix(quote(environ.get("SCRIPT_NAME", "")))
        else:
            path = quote(environ.get("PATH_INFO", ""), encoding="latin-1")
        if path.startswith("//"):  # whose first part is empty: Werkzeug would leave it out
            path = f"/{quote('/', safe='')}{path[2:]}"
        environ["PATH_INFO"] = UNRESERVED.sub(lambda match: unquote(match[0]), path)
        return self._application(environ, start_response)


def raw_path(target: str) -> str:
    """Return the path of a request's target, which may begin with `http://host` (RFC 9112 section 3.2)."""
    path = re.split("[?#]", target, maxsplit=1)[0]
    return path if path.startswith("/") else f"/{path.partition('://')[2].partition('/')[2]}"
