"""Every error answer, in one place: application/problem+json (RFC 9457), with the offending field if there is one."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from apiflask import APIFlask, HTTPError
from flask import Response, request
from werkzeug.exceptions import HTTPException, UnsupportedMediaType

from registry.errors import (
    BrokerBusy,
    BrokerNotFound,
    ConfigNotFound,
    InvalidField,
    RegistrationRefused,
    RegistryError,
    SettingsRefused,
    StoreUnavailable,
    TopicNotFound,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = "1"
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

log = logging.getLogger(__name__)


class Problem(Exception):
    """An answer that is an error. `kind` is the end of its type, and says more than the status does."""

    def __init__(self, status: int, kind: str, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.field = field


KINDS: Mapping[type[RegistryError], tuple[int, str]] = {
    StoreUnavailable: (503, "store-unavailable"),
    BrokerBusy: (503, "broker-busy"),
    TopicNotFound: (404, "topic-not-found"),
    BrokerNotFound: (404, "broker-not-found"),
    ConfigNotFound: (404, "config-not-found"),
    RegistrationRefused: (409, "registration-refused"),
    SettingsRefused: (403, "settings-refused"),
    InvalidField: (422, "invalid-field"),
}


PLAIN = {404: "no such path here", 405: "the path does not take this method"}


class _Document(msgspec.Struct, omit_defaults=True):
    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "field": {"type": "string", "description": "the member or parameter that is wrong, with its path"},
    },
}


def install(app: APIFlask) -> None:
    """Answer all errors of an application, and refuse what no view would look at."""
    app.register_error_handler(Problem, lambda error: _answer(error))
    app.register_error_handler(HTTPError, _of_validation)
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(RegistryError, _of_registry)
    app.register_error_handler(Exception, _of_defect)

    @app.before_request
    def refuse_other_than_json() -> None:
        if request.routing_exception is not None:
            return
        if request.method in WITH_BODY and not request.is_json:
            raise UnsupportedMediaType("the body has to be application/json")
        assert request.endpoint is not None
        spec: Mapping[str, Any] = getattr(app.view_functions[request.endpoint], "_spec", {})
        if request.args and not spec.get("args"):
            name = next(iter(request.args))
            raise Problem(422, "invalid-field", f"{name}: no such parameter here", field=name)


def _answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    document = _Document(
        f"urn:redis-namesrv:{problem.kind}" if problem.kind else "about:blank",
        HTTPStatus(problem.status).phrase,
        problem.status,
        problem.detail,
        problem.field,
    )
    response = Response(msgspec.json.encode(document) + b"\n", problem.status, headers, mimetype=MEDIA_TYPE)
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = RETRY_AFTER_S
    return response


def _of_registry(error: RegistryError) -> Response:
    status, kind = KINDS.get(type(error), (500, "defect"))
    return _answer(Problem(status, kind, str(error), field=getattr(error, "field", None)))


def _of_validation(error: HTTPError) -> Response:
    """APIFlask's: {location: {path of the member: [reason, …]}}; the first member is answered."""
    for members in error.detail.values():
        for path, reasons in members.items():
            field = "body" if path == "_schema" else path
            return _answer(Problem(error.status_code, "invalid-field", f"{field}: {reasons[0]}", field=field))
    return _answer(Problem(error.status_code, "", str(error.message)))


def _of_http(error: HTTPException) -> Response:
    """Those of Flask itself: no such path, method or media type, malformed JSON, a body that is too large."""
    detail = PLAIN.get(error.code or 500, error.description or error.name)
    kept = {
        name: value for name, value in error.get_headers() if name not in ("Content-Type", "Content-Length")
    }
    return _answer(Problem(error.code or 500, "", detail), kept)


def _of_defect(error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return _answer(Problem(500, "defect", "the name server could not do this; its log says why"))
