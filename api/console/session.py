"""Sessions of browsers: a cookie that holds the operator's bearer token, sealed, and is good for 8 hours.

The key is the namespace's, so any worker opens it. The token is proven at each request: one that is revoked or over
ends its sessions. A form bears what only a page of the same session has, beside the checks of `api.cross_site`."""

import hmac
from time import monotonic
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from flask import Response, current_app, request

from api.console.blueprint import PREFIX
from api.name_server import NameServer
from api.problems import Problem
from registry.session_key import session_key

__all__ = ["CSRF", "Sessions", "check_form", "form_proof", "sessions"]

COOKIE: Final = "namesrv_console"
SESSION_S: Final = 8 * 3600
CSRF: Final = "csrf"
"""The field of a form."""
COOKIE_MOST: Final = 4096
KEY_AGAIN_S: Final = 5.0
EXTENSION: Final = "console-sessions"


class Sessions:
    """Opens and seals the cookies of an application's browsers."""

    def __init__(self, server: NameServer) -> None:
        self._server = server
        self._key: bytes = b""
        self._read_s = 0.0

    def token(self) -> str | None:
        """Return the token in the cookie of this request; None without one, or where it is over. Raises
        StoreUnavailable where the key is not known yet."""
        cookie = request.cookies.get(COOKIE, "")
        if not cookie.isascii() or not 0 < len(cookie) <= COOKIE_MOST:
            return None
        try:
            return self._fernet().decrypt(cookie, ttl=SESSION_S).decode()
        except InvalidToken:
            if monotonic() - self._read_s < KEY_AGAIN_S:
                return None
        self._key = b""  # the store may have another one, as after it was emptied
        try:
            return self._fernet().decrypt(cookie, ttl=SESSION_S).decode()
        except InvalidToken:
            return None

    def begin(self, response: Response, token: str) -> None:
        """Have the browser keep a token."""
        cookie = self._fernet().encrypt(token.encode()).decode()
        response.set_cookie(
            COOKIE, cookie, max_age=SESSION_S, path=_path(), secure=True, httponly=True, samesite="Strict"
        )

    def end(self, response: Response) -> None:
        """Have the browser forget its token."""
        response.delete_cookie(COOKIE, path=_path(), secure=True, httponly=True, samesite="Strict")

    def proof(self) -> str:
        """Return what a form of this session bears."""
        self._fernet()
        cookie = request.cookies.get(COOKIE, "")
        return hmac.digest(self._key, cookie.encode(), "sha256").hex()

    def _fernet(self) -> Fernet:
        if not self._key:
            made = Fernet.generate_key().decode()
            self._key = self._server.run(session_key(self._server.keys, made)).encode()
            self._read_s = monotonic()
        return Fernet(self._key)


def sessions() -> Sessions:
    """Return the sessions of the application that handles this request."""
    of_app: Sessions = current_app.extensions[EXTENSION]
    return of_app


def form_proof() -> str:
    """Return what a form of this page bears."""
    return sessions().proof()


def check_form() -> None:
    """Raise the Problem of a form that no page of this session sent."""
    if not hmac.compare_digest(request.form.get(CSRF, "").encode(), sessions().proof().encode()):
        detail = "this form is of another session, or too old; go back, load the page again and repeat it"
        raise Problem(403, "cross-site", detail)


def _path() -> str:
    return f"{request.script_root}{PREFIX}"
