"""`?dryRun=true` on a request that changes something: it is answered as the change would be, and nothing is changed."""

from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from flask import Flask, Response, current_app, g, has_request_context, request
from pydantic import BaseModel, ConfigDict, Field
from werkzeug.datastructures import ImmutableMultiDict

from api.methods import SAFE
from registry.dry_run import DryRun
from registry.errors import InvalidField

__all__ = ["DryRunAnswer", "describe", "dry_run", "install"]

PARAMETER: Final = "dryRun"
MEMBER: Final = "dryRun"
VALUES: Final[Mapping[str, bool]] = {"true": True, "false": False}
DESCRIPTION: Final = (
    "true: answer as if it were done, and change nothing; `eventId` is null then, and `dryRun` says more"
)


class DryRunAnswer(BaseModel):
    """What the change would be; only the answer of a dry run has it."""

    model_config = ConfigDict(frozen=True)

    events: dict[str, int] = Field(description="how many entries of each kind the event stream would get")


def dry_run() -> DryRun | None:
    """Return the dry run that this request is; None of one that changes what it says."""
    if not has_request_context():
        return None
    run: DryRun | None = g.get("dry_run")
    return run


def install(app: Flask) -> None:
    """Have requests that change something take the parameter, and no view see it."""

    @app.before_request
    def begin() -> None:
        given = request.args.getlist(PARAMETER)
        if not given or request.method in SAFE or request.routing_exception is not None:
            return
        if len(given) > 1 or given[0] not in VALUES:
            raise InvalidField(PARAMETER, "true or false, once")
        rest = [(name, value) for name, value in request.args.items(multi=True) if name != PARAMETER]
        request.args = ImmutableMultiDict(rest)
        g.dry_run = DryRun() if VALUES[given[0]] else None

    @app.after_request
    def tell(response: Response) -> Response:
        run = dry_run()
        if run is None or response.status_code != HTTPStatus.OK:
            return response
        answer: dict[str, Any] = response.get_json()
        if "eventId" in answer:
            answer["eventId"] = None
        answer[MEMBER] = _answer(run).model_dump()
        response.set_data(current_app.json.dumps(answer) + "\n")
        return response


def _answer(run: DryRun) -> DryRunAnswer:
    return DryRunAnswer(events=Counter(entry["kind"] for entry in run.entries))


def describe(spec: dict[str, Any]) -> None:
    """Add the parameter and what it answers to the operations of an OpenAPI document that change something."""
    schemas = spec["components"]["schemas"]
    schemas[DryRunAnswer.__name__] = DryRunAnswer.model_json_schema()
    for path in spec["paths"].values():
        for method, operation in path.items():
            if method.upper() not in SAFE:
                operation["parameters"].append(_parameter())
                (content,) = operation["responses"]["200"]["content"].values()
                name = content["schema"]["$ref"].rpartition("/")[2]
                member = {"$ref": f"#/components/schemas/{DryRunAnswer.__name__}"}
                schemas[name]["properties"][MEMBER] = member


def _parameter() -> dict[str, Any]:
    return {
        "name": PARAMETER,
        "in": "query",
        "required": False,
        "description": DESCRIPTION,
        "schema": {"type": "boolean"},
    }
