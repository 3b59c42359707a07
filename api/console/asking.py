"""Requests of the console to the HTTP API, answered within this process.

So rights, limits, rates, dry runs, the audit and errors of a page are those of the API, and no page reads the store by
itself. Of the browser's request the API sees where it came from, and the token of its session."""

from collections.abc import Mapping
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
from flask import current_app, g, request

from api.access_classes import HTTP
from api.caller import SESSION, TOKEN_HEADER
from api.guard import guard
from api.path_names import encoded
from api.problem_names import kind_of, type_of
from api.trusted_proxies import FORWARDED

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

__all__ = ["Headers", "Query", "Reply", "ask", "path"]

Query = Mapping[str, str | int | None]
Headers = Mapping[str, str]
"""By name, as HTTP spells them."""

KEPT: Final = (
    *("SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "wsgi.version", "wsgi.url_scheme", "wsgi.errors"),
    *("wsgi.multithread", "wsgi.multiprocess", "wsgi.run_once"),
    *("REMOTE_ADDR", "REMOTE_PORT", "REMOTE_USER", FORWARDED, SESSION, "HTTP_HOST", TOKEN_HEADER),
)
"""What the API sees of a browser's request. Its Origin was judged before, and it has no conditions of its own."""


class Reply(msgspec.Struct, frozen=True):
    """An answer of the API: `body` as JSON has it, {} without one; `tag` is its ETag, "" without one."""

    status: int
    body: Any
    tag: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is no error."""
        return self.status < HTTPStatus.BAD_REQUEST

    @property
    def kind(self) -> str:
        """The end of the type of a problem, such as `store-unavailable`; "" where it has none."""
        return "" if self.ok else kind_of(self.body.get("type", ""))

    @property
    def detail(self) -> str:
        """What a problem says."""
        return "" if self.ok else str(self.body.get("detail", ""))

    @property
    def state(self) -> str:
        """`ok`, `denied`, `away`, `limited`, `missing`, `outdated`, or `failed` for all else: what a page draws."""
        return "ok" if self.ok else STATES.get(self.status, "failed")


STATES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "denied",
    HTTPStatus.FORBIDDEN: "denied",
    HTTPStatus.NOT_FOUND: "missing",
    HTTPStatus.PRECONDITION_FAILED: "outdated",
    HTTPStatus.TOO_MANY_REQUESTS: "limited",
    HTTPStatus.SERVICE_UNAVAILABLE: "away",
}


def path(*parts: str) -> str:
    """Return `/v1/…` with these names as its parts."""
    return "/v1/" + "/".join(map(encoded, parts))


def ask(
    method: str,
    target: str,
    query: Query | None = None,
    *,
    body: Any = None,
    headers: Headers | None = None,
    token: str | None = None,
) -> Reply:
    """Return the API's answer to a request; parameters that are None or "" are left out.

    `token` is another than that of the session."""
    away: Reply | None = g.get("store_away")
    if away is not None:
        return away  # a page waits once for a store that does not answer
    given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
    environ = _environ(method, target, urlencode(given), headers or {}, body)
    if token is not None:
        environ[TOKEN_HEADER] = f"Bearer {token}"
        environ.pop(SESSION, None)
    app, known = current_app, g.get("caller")
    with app.app_context(), app.request_context(environ):  # `g` of its own
        if method == "GET" and (denied := _denied(known)) is not None:
            return denied
        response = app.full_dispatch_request()
        text, tag = response.get_data(), response.get_etag()[0]
    reply = Reply(response.status_code, msgspec.json.decode(text) if text else {}, tag or "")
    if reply.kind == "store-unavailable":
        g.store_away = reply
    return reply


def _denied(caller: Reply | None) -> Reply | None:
    """Return the refusal of what the caller of a page is known to have no right to: pages look again and again, and
    each time would be a refusal for the audit."""
    needed = HTTP.get(request.endpoint or "")
    if caller is None or not caller.ok or not needed or guard().observes:
        return None
    if needed.label in caller.body["classes"]:
        return None
    principal = caller.body["principal"]
    detail = f"it needs the class {needed.label}, which {principal or 'a caller without a token'} has not"
    status = HTTPStatus.UNAUTHORIZED if principal is None else HTTPStatus.FORBIDDEN
    return Reply(status, {"type": type_of("forbidden"), "detail": detail})


def _environ(method: str, target: str, query: str, headers: Headers, body: Any) -> "WSGIEnvironment":
    environ: WSGIEnvironment = {name: request.environ[name] for name in KEPT if name in request.environ}
    text = b"" if body is None else msgspec.json.encode(body)
    environ |= {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": target,  # encoded, as `api.path_names.RawPaths` hands it on
        "QUERY_STRING": query,
        "wsgi.input": BytesIO(text),
        "CONTENT_LENGTH": str(len(text)),
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
    }
    if body is not None:
        environ["CONTENT_TYPE"] = "application/json"
    return environ
