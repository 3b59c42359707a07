"""Members that left without unregistering within the last day, and have not come back: what the tables have no more.

A scheduler notes them by the entries of the event stream; metrics and the doctor read them."""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import astuple

from registry.clock import now_ms
from registry.keys import Keys
from registry.members import Broker
from registry.plans import Batch, Plan, call
from rocketmq_remoting.typed import converted

__all__ = ["GONE_MOST", "GONE_MS", "GoneMember", "MemberName", "note", "read"]

GONE_MS: Final = 24 * 3_600_000
GONE_MOST: Final = 1_000
"""So many are noted: brokers may come and go under any names."""


class MemberName(msgspec.Struct, frozen=True, array_like=True):
    """A member, by what it has on its return too."""

    cluster: str
    broker: str
    id: str


class GoneMember(NamedTuple):
    """A member that left, and when (Unix ms)."""

    name: MemberName
    at_ms: int


def note(keys: Keys, changes: Mapping[MemberName, int | None]) -> Plan[None]:
    """Note members that left, each with its time (Unix ms), and drop those that are there again (None)."""
    back = [_text(name) for name, at_ms in changes.items() if at_ms is None]
    gone = {_text(name): at_ms for name, at_ms in changes.items() if at_ms is not None}
    now = yield from now_ms()
    commands = [call("ZREMRANGEBYSCORE", keys.gone, "-inf", now - GONE_MS), call("ZCARD", keys.gone)]
    if back:
        commands.insert(0, call("ZREM", keys.gone, *back))
    *_, noted = yield Batch(tuple(commands))
    flat = [
        word for text, at_ms in [*gone.items()][: max(GONE_MOST - int(noted), 0)] for word in (at_ms, text)
    ]
    if flat:
        yield Batch((call("ZADD", keys.gone, *flat), call("PEXPIRE", keys.gone, GONE_MS)))


def read(keys: Keys, now: int, brokers: Iterable[Broker]) -> Plan[tuple[GoneMember, ...]]:
    """Return those that left within the last day, the longest gone first, without those that these brokers have."""
    rows = yield call("ZRANGE", keys.gone, 0, GONE_MOST, "WITHSCORES")
    members = (GoneMember(name, int(score)) for text, score in rows if (name := _name(text)) is not None)
    there = {
        MemberName(member.cluster, broker.name, str(member.id))
        for broker in brokers
        for member in broker.members
    }
    return tuple(one for one in members if one.at_ms > now - GONE_MS and one.name not in there)


def _text(name: MemberName) -> str:
    """Return a name as JSON, with half surrogate pairs as they are, which peers may choose: msgspec refuses them."""
    return json.dumps(astuple(name), ensure_ascii=False)


def _name(text: str) -> MemberName | None:
    """Return a name that was noted, None for what another hand wrote."""
    try:
        return converted(json.loads(text), MemberName)
    except (ValueError, RecursionError):
        return None
