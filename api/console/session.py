"""Sessions of browsers: a cookie that holds the operator's bearer token, sealed, and is good for 8 hours.

The key is the namespace's, so any worker opens it. The token is proven at each request: one that is revoked or over
ends its sessions. A form bears what only a page of the same session has, beside the checks of `api.cross_site`."""

import hmac
from hashlib import sha256
from http import HTTPStatus
from time import monotonic
from typing import Final, NamedTuple

from cryptography.fernet import Fernet, InvalidToken
from flask import Response, current_app, request

from api.caller import SESSION, TOKEN_HEADER, is_bearer
from api.console.blueprint import PREFIX
from api.name_server import NameServer
from api.problems import Problem
from registry.errors import StoreUnavailable
from registry.session_key import session_key

__all__ = ["CSRF", "Sessions", "check_form", "form_proof", "sessions"]

COOKIE: Final = "namesrv_console_"
"""The beginning of its name; then what tells name servers on one host apart, since cookies know no ports."""
SESSION_S: Final = 8 * 3600
CSRF: Final = "csrf"
"""The field of a form."""
COOKIE_MOST: Final = 4096
FORM_MOST: Final = 1 << 20
"""A KV value is at most 256 KiB, and three characters a byte where it is encoded."""
FIELDS_MOST: Final = 64
FORM: Final = "application/x-www-form-urlencoded"
KEY_FOR_S: Final = 10.0
AGAIN_S: Final = 1.0
EXTENSION: Final = "console-sessions"


class _Key(NamedTuple):
    """The key, as it was read or looked for last."""

    key: bytes
    read_s: float

    @property
    def cookie(self) -> str:
        """The name of the cookies that it seals."""
        return f"{COOKIE}{sha256(self.key).hexdigest()[:8]}"


class Sessions:
    """Opens and seals the cookies of an application's browsers. All raise StoreUnavailable while no key is known."""

    def __init__(self, server: NameServer) -> None:
        self._server = server
        self._known: _Key | None = None

    def prove(self) -> None:
        """Have this request bear the token of its session; what a proxy's own users prove themselves with is none."""
        given = request.environ.get(TOKEN_HEADER)
        if given is not None and is_bearer(given):
            return
        request.environ.pop(TOKEN_HEADER, None)
        token = self._token() if any(name.startswith(COOKIE) for name in request.cookies) else None
        if token is not None:
            request.environ[TOKEN_HEADER] = f"Bearer {token}"
            request.environ[SESSION] = sha256(token.encode()).hexdigest()[:16]

    def begin(self, response: Response, token: str) -> None:
        """Have the browser keep a token."""
        key = self._current()
        cookie = Fernet(key.key).encrypt(token.encode()).decode()
        response.set_cookie(
            key.cookie, cookie, max_age=SESSION_S, path=_path(), secure=True, httponly=True, samesite="Strict"
        )

    def end(self, response: Response) -> None:
        """Have the browser forget its token."""
        name = self._current().cookie
        response.delete_cookie(name, path=_path(), secure=True, httponly=True, samesite="Strict")

    def proof(self) -> str:
        """Return what a form of this session bears."""
        return _proof(self._current())

    def accepts(self, proof: str) -> bool:
        """Return whether a form bears that, by the key that the store has now if not by the one known."""
        return any(
            hmac.compare_digest(proof.encode(), _proof(self._current(within_s)).encode())
            for within_s in (KEY_FOR_S, AGAIN_S)
        )

    def _token(self) -> str | None:
        for within_s in (KEY_FOR_S, AGAIN_S):
            key = self._current(within_s)
            cookie = request.cookies.get(key.cookie, "")
            if cookie.isascii() and 0 < len(cookie) <= COOKIE_MOST:
                try:
                    return Fernet(key.key).decrypt(cookie, ttl=SESSION_S).decode()
                except InvalidToken:
                    continue
        return None

    def _current(self, within_s: float = KEY_FOR_S) -> _Key:
        """Return the key as it was so many seconds ago at the most; while the store is away, as it was last."""
        known, now_s = self._known, monotonic()
        if known is not None and now_s - known.read_s < within_s:
            return known
        made = Fernet.generate_key().decode()
        try:
            key = self._server.run_probe(session_key(self._server.keys, made)).encode()
        except StoreUnavailable:
            if known is None:
                raise
            key = known.key
        self._known = current = _Key(key, now_s)
        return current


def sessions() -> Sessions:
    """Return the sessions of the application that handles this request."""
    of_app: Sessions = current_app.extensions[EXTENSION]
    return of_app


def form_proof() -> str:
    """Return what a form of this page bears."""
    return sessions().proof()


def check_form() -> None:
    """Raise the Problem of a form that is too long, or that no page of this session sent."""
    if request.mimetype != FORM:
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "", f"a form is {FORM}")
    request.max_content_length = FORM_MOST
    if request.get_data().count(b"&") >= FIELDS_MOST:
        raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "", f"a form has {FIELDS_MOST} fields at most")
    if not sessions().accepts(request.form.get(CSRF, "")):
        detail = "this form is of another session, or too old; go back, load the page again and repeat it"
        raise Problem(HTTPStatus.FORBIDDEN, "cross-site", detail)


def _proof(key: _Key) -> str:
    return hmac.digest(key.key, request.cookies.get(key.cookie, "").encode(), "sha256").hex()


def _path() -> str:
    return f"{request.script_root}{PREFIX}"
