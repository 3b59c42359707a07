"""Errors as application/problem+json (RFC 9457), with the offending field if there is one."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from apiflask import APIFlask, HTTPError
from flask import Response, g, request
from gunicorn.http.errors import ParseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from redis.exceptions import ResponseError
from werkzeug.exceptions import HTTPException
from werkzeug.http import quote_etag

from access.refusals import owner_remark
from api.console.blueprint import NAME as CONSOLE
from api.counters import COUNTERS
from api.dry_run import dry_run
from api.path_names import unreadable
from api.problem_names import MEDIA_TYPE, RETRY_AFTER_S, title_of, type_of
from api.wrong_input import invalid_field, refusal
from registry.errors import (
    BrokerBusy,
    BrokerNotFound,
    ComparisonNotFound,
    ConditionFailed,
    ConfigNotFound,
    IdentityConflict,
    InvalidField,
    LimitReached,
    NotOwner,
    OwnRegistration,
    RegistrationRefused,
    RegistryError,
    SettingsRefused,
    StoreUnavailable,
    TableFull,
    TopicNotFound,
    ValueDamaged,
)
from worker.logs.rate_limited_log import RateLimitedLog

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
AGAIN = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses of what may be sent again."""

log = logging.getLogger(__name__)
refusals = RateLimitedLog(log)


class Problem(Exception):
    """An error reply. `kind` is the end of its type, more precise than the status; `tag` that of what is stored."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        field: str | None = None,
        tag: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.field = field
        self.tag = tag
        self.headers = headers


KINDS: Mapping[type[RegistryError], tuple[int, str]] = {
    StoreUnavailable: (503, "store-unavailable"),
    BrokerBusy: (503, "broker-busy"),
    ValueDamaged: (503, "value-damaged"),
    TopicNotFound: (404, "topic-not-found"),
    BrokerNotFound: (404, "broker-not-found"),
    ConfigNotFound: (404, "config-not-found"),
    ComparisonNotFound: (404, "comparison-not-found"),
    RegistrationRefused: (409, "registration-refused"),
    LimitReached: (409, "limit-reached"),
    TableFull: (409, "limit-reached"),
    ConditionFailed: (412, "condition-failed"),
    NotOwner: (403, "forbidden"),
    IdentityConflict: (409, "identity-conflict"),
    OwnRegistration: (409, "own-registration"),
    SettingsRefused: (403, "settings-refused"),
    InvalidField: (422, "invalid-field"),
}


class ProblemDocument(BaseModel):
    """The body of every error answer (RFC 9457)."""

    model_config = ConfigDict(frozen=True)

    type: str
    title: str
    status: int
    detail: str
    field: Annotated[str, Field(description="the member or parameter that is wrong, with its path")] = ""
    etag: Annotated[str, Field(description="the ETag that the value has, where a condition failed")] = ""


REFERENCE: dict[str, Any] = {"$ref": "#/components/schemas/ProblemDocument"}
"""The schema of ProblemDocument in OpenAPI."""


def install(app: APIFlask) -> None:
    """Install the error handlers of an application; refuse other bodies than JSON and unknown parameters."""
    app.register_error_handler(Problem, lambda error: _reply(error, error.headers))
    app.register_error_handler(HTTPError, _of_validation)
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(RegistryError, _of_registry)
    app.register_error_handler(ParseException, _of_body)
    app.register_error_handler(ResponseError, _of_refusal)
    app.register_error_handler(Exception, _of_defect)

    @app.before_request
    def refuse_other_than_utf_8() -> None:
        part = unreadable(request.environ["PATH_INFO"])
        if part is not None:
            raise Problem(400, "malformed-path", f"a part of the path is no UTF-8: {part}")

    @app.before_request
    def refuse_other_than_json() -> None:
        if request.routing_exception is not None or request.blueprint == CONSOLE:
            return
        if request.method in WITH_BODY and not request.is_json:
            raise Problem(415, "", "the body has to be application/json")
        if request.args and "query" not in inputs(app):
            name = next(iter(request.args))
            raise Problem(422, "invalid-field", f"{name}: no such parameter here", field=name)


def inputs(app: APIFlask) -> set[str]:
    """Return where the view of this request, which has one, takes input beside its body: `query`, `headers`."""
    assert request.endpoint is not None
    spec: Mapping[str, Any] = getattr(app.view_functions[request.endpoint], "_spec", {})
    return {location for _, location in spec.get("args", ())}


def _reply(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    g.problem = problem
    document = ProblemDocument(
        type=type_of(problem.kind),
        title=title_of(problem.status),
        status=problem.status,
        detail=problem.detail,
        field=problem.field or "",
        etag=problem.tag and quote_etag(problem.tag),
    )
    text = document.model_dump_json(exclude_defaults=True)
    response = Response(f"{text}\n", problem.status, headers, mimetype=MEDIA_TYPE)
    if problem.status in AGAIN:
        response.headers["Retry-After"] = RETRY_AFTER_S
    if problem.tag:
        response.set_etag(problem.tag)
    return response


def _of_registry(error: RegistryError) -> Response:
    status, kind = KINDS.get(type(error), (500, "defect"))
    if isinstance(error, LimitReached) and dry_run() is None:
        COUNTERS.limited(error.option)
        refusals.warning(
            "%s %a of %s was refused, and what was there stays: %s; if such a size is wanted, raise the option",
            request.method,
            request.path,
            request.remote_addr,
            error,
            kind=error.option,
        )
    field, tag = getattr(error, "field", None), getattr(error, "tag", "")
    detail = owner_remark(error.name, error.actor) if isinstance(error, NotOwner) else str(error)
    return _reply(Problem(status, kind, detail, field=field, tag=tag))


def _of_validation(error: HTTPError) -> Response:
    """Return the problem of the first thing that is wrong with what a view takes (`input` of APIFlask)."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return _of_defect(error)
    field, expected = invalid_field(cause, of_body="json" in error.detail)
    return _reply(Problem(error.status_code, "invalid-field", f"{field}: {expected}", field=field))


def _of_http(error: HTTPException) -> Response:
    """Return the problem of an error of Flask: path, method, media type, malformed JSON, a body that is too large."""
    headers = {
        name: value for name, value in error.get_headers() if name not in ("Content-Type", "Content-Length")
    }
    return _reply(Problem(error.code or 500, "", refusal(error)), headers)


def _of_body(error: Exception) -> Response:
    """Return the problem of a body whose chunks or trailers gunicorn cannot read."""
    return _reply(Problem(400, "", f"the body is malformed: {error}"))


def _of_refusal(error: ResponseError) -> Response:
    """Return the problem of a command that the store refuses: a right is missing, or a key has another type."""
    refusals.warning(
        "%s %a failed, since the store refuses: %s; compare the rights of its user with docs/redis.md, and see in "
        "GET /v1/repairs whether something changes its keys",
        request.method,
        request.path,
        error,
    )
    return _reply(Problem(503, "store-refused", f"the store refuses: {error}"))


def _of_defect(error: Exception) -> Response:
    log.error(
        "%s %s failed by a fault of this server; report it", request.method, request.path, exc_info=error
    )
    return _reply(Problem(500, "defect", "the name server could not do this; its log says why"))
