"""The Redis clock, by which all leases, entries and drains of a namespace run; in Unix ms."""

from typing import Any, Final

from registry.plans import Plan, call

TIME: Final = call("TIME")
"""For a batch; `unix_ms` reads its reply."""


def unix_ms(reply: Any) -> int:
    """Return the time that a reply to TIME, `(seconds, microseconds)`, gives."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


def now_ms() -> Plan[int]:
    """Return the time now."""
    return unix_ms((yield TIME))
