"""What a page is where a request for it fails: never the API's JSON."""

import logging
from http import HTTPStatus

from apiflask import HTTPError
from flask import Response
from werkzeug.exceptions import HTTPException

from api.console.asking import Reply
from api.console.blueprint import bp
from api.console.login import session_is_over
from api.console.page import SessionOver, show
from api.problem_names import type_of
from api.problems import Problem
from registry.errors import StoreUnavailable

__all__: list[str] = []

log = logging.getLogger(__name__)


@bp.errorhandler(SessionOver)
def of_session(_: SessionOver) -> Response:
    """To the login, from wherever"""
    return session_is_over()


@bp.errorhandler(Problem)
def of_problem(problem: Problem) -> Response:
    """What a page of its own refused, as a form of another session"""
    return _failed(problem.status, problem.kind, problem.detail)


@bp.errorhandler(StoreUnavailable)
def of_store(error: StoreUnavailable) -> Response:
    """The store, which a session's key is read from"""
    return _failed(HTTPStatus.SERVICE_UNAVAILABLE, "store-unavailable", str(error))


@bp.errorhandler(HTTPException)
def of_http(error: HTTPException) -> Response:
    """A path or a method that no page has"""
    return _failed(error.code or HTTPStatus.INTERNAL_SERVER_ERROR, "", error.description or "")


@bp.errorhandler(HTTPError)
def of_input(error: HTTPError) -> Response:
    """A parameter that is none, of what pages follow changes by"""
    return _failed(error.status_code, "invalid-field", error.message or "")


@bp.errorhandler(Exception)
def of_defect(_: Exception) -> Response:
    """A defect of a page"""
    log.exception("a page of the console failed; report it with this line")
    return _failed(HTTPStatus.INTERNAL_SERVER_ERROR, "", "this page has a defect; the log says which")


@bp.route("/<path:_>", methods=["GET", "POST"])
def no_page(_: str) -> Response:
    """There is no page here"""
    return _failed(HTTPStatus.NOT_FOUND, "", "there is no such page")


def _failed(status: int, kind: str, detail: str) -> Response:
    reply = Reply(status, {"type": type_of(kind), "detail": detail})
    try:
        return show("failure.html", "", replies=(reply,), reply=reply)
    except SessionOver:
        return session_is_over()
