"""What came of registrations over HTTP: counted and timed, and the refused ones logged with broker and reason."""

import logging
from typing import Any, Final

from flask import Response, g, request

from api.counters import COUNTERS, seconds_so_far
from metrics.registrations import REJECTED
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["count_outcome", "outcome_is", "refused_as"]

CONFLICT: Final = "conflict"
FIELDS: Final = ("brokerName", "brokerAddr", "cluster")
SHOWN: Final = 64
"""Characters of what a caller sent that a line has."""

log = RateLimitedLog(logging.getLogger(__name__))


def outcome_is(outcome: str) -> None:
    """Note what came of the registration that this request is."""
    g.outcome = outcome


def refused_as(kind: str, reason: str) -> None:
    """Note why this request is refused; `kind` is one of few."""
    g.refusal = kind, reason


def count_outcome(response: Response) -> Response:
    """Count the registration that has this answer."""
    outcome: str = g.get("outcome", REJECTED)
    COUNTERS.registered(outcome, seconds_so_far())
    if outcome in (REJECTED, CONFLICT):
        _log_refused()
    return response


def _log_refused() -> None:
    kind, reason = g.get("refusal", ("", "see its answer"))
    sent: Any = request.get_json(silent=True)
    fields = sent if isinstance(sent, dict) else {}
    name, address, cluster = (str(fields.get(field))[:SHOWN] for field in FIELDS)
    log.warning(
        "the registration of broker %s at %s in cluster %s, which came from %s over HTTP, was refused, and what was "
        "there stays: %s; see Registrations are refused in docs/runbook.md",
        name,
        address,
        cluster,
        request.remote_addr,
        reason,
        kind=kind,
    )
