"""The dry run that a request is, if it says so: `?dryRun=true` on one that changes something."""

from collections.abc import Mapping
from typing import Final

from flask import Flask, g, has_request_context, request
from werkzeug.datastructures import ImmutableMultiDict

from api.methods import SAFE
from registry.dry_run import DryRun
from registry.errors import InvalidField

__all__ = ["PARAMETER", "dry_run", "install"]

PARAMETER: Final = "dryRun"
VALUES: Final[Mapping[str, bool]] = {"true": True, "false": False}


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
