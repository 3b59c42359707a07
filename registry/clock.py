"""The Redis clock, by which all leases, entries and drains of a namespace run; in Unix ms."""

from typing import Any, Final

from registry.plans import Plan, call

TIME: Final = call("TIME")
"""For a batch; `unix_ms` reads its reply."""
TIME_MAX_MS: Final = 10**14 - 1
"""As lua/includes: a time has 14 digits at most."""


LATE_MS: Final = 5000
"""As lua/includes/lease.lua: workers follow the stream and watch leases each second; longer silence is an outage."""


def unix_ms(reply: Any) -> int:
    """Return the time that a reply to TIME, `(seconds, microseconds)`, gives."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


def now_ms() -> Plan[int]:
    """Return the time now."""
    return unix_ms((yield TIME))


def whole_ms(score: float) -> int:
    """Return a time of a sorted set; one of more than 14 digits is damage, and counts as the furthest."""
    return int(min(max(score, -TIME_MAX_MS), TIME_MAX_MS))
