"""Registrations that were refused since another living member has what they take: noted with the event that tells of
them (lua/report_refusal.lua), once a minute while a broker repeats them."""

import json
from typing import Final, NamedTuple

import msgspec

from registry.keys import Keys
from registry.plans import Plan, call
from rocketmq_remoting.typed import converted

__all__ = ["RECENT_MS", "Claimed", "RefusedClaim", "read"]

RECENT_MS: Final = 5 * 60_000
READ_MOST: Final = 1_000
"""As many as are noted."""


class Claimed(msgspec.Struct, frozen=True, array_like=True):
    """What a refused request named, its cause as its event has it, and the address that has it."""

    cluster: str
    broker: str
    id: str
    addr: str
    cause: str
    holder: str


class RefusedClaim(NamedTuple):
    """What was refused, and when last (Unix ms)."""

    claimed: Claimed
    at_ms: int


def read(keys: Keys, now: int) -> Plan[tuple[RefusedClaim, ...]]:
    """Return those of the last five minutes, the newest first."""
    rows = yield call("ZRANGE", keys.refused, 0, READ_MOST, "WITHSCORES")
    claims = [RefusedClaim(one, int(score)) for text, score in rows if (one := _claimed(text)) is not None]
    return tuple(claim for claim in reversed(claims) if claim.at_ms > now - RECENT_MS)


def _claimed(text: str) -> Claimed | None:
    """Return what was noted, None for what another hand wrote."""
    try:
        return converted(json.loads(text), Claimed)
    except (ValueError, RecursionError):
        return None
