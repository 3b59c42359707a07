"""Login by a bearer token, and its end."""

import re
from http import HTTPStatus
from typing import Final

from flask import Response, request

from api.console.asking import ask, path
from api.console.blueprint import bp
from api.console.page import see_other, show
from api.console.session import sessions

__all__ = ["session_is_over"]

TOKEN_MOST: Final = 1024
PAGE: Final = re.compile("[a-z]+(/(?![.]{1,2}([/?]|$))[A-Za-z0-9%=._~-]+)*([?][A-Za-z0-9%=&+._~-]*)?")
"""Of the console, to which a login leads on."""


@bp.get("/login")
def login_page() -> Response:
    """Where an operator pastes a token"""
    return show("login.html", "login", problem="")


@bp.post("/login")
def login() -> Response:
    """Keep a token that proves a principal"""
    token = request.form.get("token", "").strip()
    if not token or len(token) > TOKEN_MOST or not token.isascii():
        return show("login.html", "login", status=HTTPStatus.UNPROCESSABLE_ENTITY, problem="Paste a token.")
    reply = ask("GET", path("whoami"), token=token)
    if not reply.ok:
        said = "This token proves no principal: it is wrong, over or revoked."
        problem = said if reply.status == HTTPStatus.UNAUTHORIZED else reply.detail
        return show("login.html", "login", status=reply.status, problem=problem)
    response = see_other()
    onward = request.form.get("next", "")
    if PAGE.fullmatch(onward):
        response.headers["Location"] += f"/{onward}"
    sessions().begin(response, token)
    return response


@bp.post("/logout")
def logout() -> Response:
    """Forget the token"""
    response = see_other("login")
    sessions().end(response)
    return response


def session_is_over() -> Response:
    """Return the way to the login of a browser whose token is good no more; a part of a page has all of it go there."""
    response = see_other("login", over="1")
    if "HX-Request" in request.headers:
        response = Response(
            status=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": response.headers["Location"]}
        )
    sessions().end(response)
    return response
