"""The keys of the served reports, `ns:{<namespace>}:report:<name>`; readers know them from registry/keys.py.

All are hashes but the three that say otherwise.
"""

META = "meta"
SLO = "slo"
DETECT = "detect"
REPAIR = "repair"
SKEW = "skew"
TIMEOUTS = "timeouts"
FLAP = "flap"  # sorted set
FLAP_VALUES = "flap:values"
INCIDENTS = "incidents"  # sorted set
CONFLICTS = "conflicts"  # sorted set
TOP = "top"
"""The field of `churn:<window>` that holds topics; every other has a colon."""


def availability(window: str) -> str:
    """Of one window: `24h`, `day:2026-01-31`."""
    return f"availability:{window}"


def churn(window: str) -> str:
    """Of one rolling window."""
    return f"churn:{window}"


def prefix(namespace: str) -> str:
    """What all keys of a namespace's reports begin with; the braces keep them in one slot of a cluster."""
    return f"ns:{{{namespace}}}:report:"
