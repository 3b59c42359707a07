"""What came of registrations over HTTP: counted and timed, and the refused ones logged with broker and reason."""

import logging
from typing import Any, Final

from flask import Response, g, request

from api.counters import COUNTERS, seconds_so_far
from api.dry_run import dry_run
from api.problems import Problem
from metrics.registrations import REJECTED
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["count_outcome", "outcome_is"]

CONFLICT: Final = "conflict"
FIELDS: Final = ("brokerName", "brokerAddr", "cluster")
SHOWN: Final = 64
"""Characters of what a caller sent that a line has."""

log = RateLimitedLog(logging.getLogger(__name__))


def outcome_is(outcome: str) -> None:
    """Note what came of the registration that this request is."""
    g.outcome = outcome


def count_outcome(response: Response) -> Response:
    """Count the registration that has this answer; a dry run is none."""
    if dry_run() is not None:
        return response
    outcome: str = g.get("outcome", REJECTED)
    COUNTERS.registered(outcome, seconds_so_far())
    if outcome in (REJECTED, CONFLICT):
        _log_refused()
    return response


def _log_refused() -> None:
    problem: Problem | None = g.get("problem")
    fields = _fields()
    name, address, cluster = (str(fields.get(field))[:SHOWN] for field in FIELDS)
    log.warning(
        "the registration of broker %s at %s in cluster %s, which came from %s over HTTP, was refused, and what was "
        "there stays: %s; see Registrations are refused in docs/runbook.md",
        name,
        address,
        cluster,
        request.remote_addr,
        problem.detail if problem else "see its answer",
        kind=problem.kind if problem else "",
    )


def _fields() -> dict[str, Any]:
    """Return the members of the request's body, none of one that cannot be read."""
    try:
        sent: Any = request.get_json(silent=True)
    except Problem:
        return {}
    return sent if isinstance(sent, dict) else {}
