"""Dry runs: a plan that is run to its end, over a store that keeps what it writes to itself.

No decision is written twice for it: each script of a plan runs as it is, but what it writes goes to tables in its
memory, which its later reads see, and which are handed to the next script of the plan (`lua/dry_run/store.lua`). Redis
gets reads only. What another writer changes meanwhile may be seen by one part of a plan and not by another, as it may
in a plan that writes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from registry.plans import Batch, Call, Plan, Request, ScriptCall, ScriptItem, joined, pairs, replies_to
from rocketmq_remoting.typed import decoded

__all__ = ["DryRun"]

T = TypeVar("T")

NOTHING_WRITTEN: Final = '{"count":0,"keys":{}}'
"""As lua/dry_run/store.lua hands it on."""
KEYLESS: Final = frozenset({"TIME"})
READS: Final = frozenset(
    (
        *("EXISTS", "GET", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN"),
        *("SCARD", "SISMEMBER", "SMEMBERS", "SMISMEMBER", "SSCAN"),
        *("XLEN", "XRANGE", "XREVRANGE", "ZCARD", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE", "ZSCORE"),
    )
)
"""Commands of plans that write nothing: of a key that is as Redis has it, Redis answers them itself."""
IN_SCRIPT: Final = frozenset(
    (
        *("DEL", "EXISTS", "GET", "HDEL", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSET", "INCR"),
        *("PEXPIRE", "SADD", "SCARD", "SET", "SISMEMBER", "SMISMEMBER", "SREM", "ZCARD", "ZREM"),
    )
)
"""Commands whose replies a script has as plans expect them, HGETALL's apart."""


class _HandedOn(msgspec.Struct, frozen=True):
    """What the scripts so far have written: `keys` to which keys; how many entries they appended."""

    count: int
    keys: Mapping[str, msgspec.Raw]


class DryRun:
    """The dry run of one request, of as many plans as it takes: each sees what those before it would have written.

    `entries` are those that the event stream would get, as it would have them."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self._handed_on = NOTHING_WRITTEN
        self._written: Mapping[str, msgspec.Raw] = {}

    def of(self, plan: Plan[T]) -> Plan[T]:
        """Return the dry run of a plan: it returns and raises the same, without an effect on the store."""
        try:
            request = next(plan)
            while True:
                try:
                    reply = yield from self._performed(request)
                except Exception as error:
                    request = plan.throw(error)
                else:
                    request = plan.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _performed(self, request: Request) -> Plan[Any]:
        match request:
            case Batch():
                return (yield from self._each(request.requests))
            case ScriptItem():
                return replies_to((request,), (yield from self._script(joined((request,)))))[0]
            case ScriptCall():
                return (yield from self._script(request))
            case Call():
                return (yield from self._command(request))
        return (yield request)

    def _each(self, requests: Sequence[Call | ScriptCall]) -> Plan[list[Any]]:
        replies = []
        for request in requests:
            replies.append((yield from self._performed(request)))
        return replies

    def _script(self, script: ScriptCall) -> Plan[Any]:
        """Return the reply of a script, and keep what it hands on."""
        args = (*script.args, self._handed_on)
        handed_on, entries, *reply = yield ScriptCall(script.name, script.keys, args, dry=True)
        self._handed_on = handed_on
        self._written = decoded(handed_on, _HandedOn).keys
        self.entries += map(pairs, entries)
        return reply[0] if reply else None  # which ends a list

    def _command(self, command: Call) -> Plan[Any]:
        name = str(command.args[0])
        if name in KEYLESS:
            return (yield command)
        key = str(command.args[1])
        if name in READS and key not in self._written:
            return (yield command)
        if name not in IN_SCRIPT:
            raise NotImplementedError(f"a dry run cannot answer {name} of what it wrote")
        reply = yield from self._script(ScriptCall("run_command", (key,), command.args))
        return pairs(reply) if name == "HGETALL" else reply
