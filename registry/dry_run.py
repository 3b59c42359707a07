"""Dry runs: a plan that is run to its end, over a store that keeps what it writes to itself.

No decision is written twice for it: each script of a plan runs as it is, but what it writes goes to tables in its
memory, which its later reads see, and which are handed to the next script of the plan (`lua/dry_run/store.lua`). Redis
gets reads only. What another writer changes meanwhile may be seen by one part of a plan and not by another, as it may
in a plan that writes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from registry.keys import Keys
from registry.plans import (
    Batch,
    Call,
    Plan,
    Request,
    ScriptCall,
    ScriptItem,
    as_json,
    joined,
    pairs,
    replies_to,
)
from rocketmq_remoting.typed import decoded

__all__ = ["DryRun"]

T = TypeVar("T")

READ_ROUTES: Final = "read_routes"
SWEEP: Final = "sweep_topics"
"""It deletes rows of past epochs, which nothing shows; those that were written since it does not see in a dry run."""
OF_ROUTES: Final = ("route", "mapping")
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


class _Written(msgspec.Struct):
    """What was written to a hash, as lua/dry_run/store.lua has it."""

    fields: dict[str, str | bool]
    more: int
    kind: str
    gone: bool = False

    def shown(self, command: Call, reply: Any) -> Any:
        """Return what a command would reply that reads rows of a route which is too long for a script."""
        match command.args:
            case ["HSCAN", *_]:
                cursor, page = reply
                rows = page | (self.fields if str(cursor) == "0" else {})
                return cursor, {
                    name: text for name in rows if (text := self.fields.get(name, page.get(name)))
                }
            case ["HMGET", _, *names]:
                stored = zip(names, reply, strict=True)
                return [self.fields.get(str(name), text) or None for name, text in stored]
        return reply

    def followed_by(self, later: "_Written") -> "_Written":
        """Return the same with what was written later."""
        fields = later.fields if later.gone else self.fields | later.fields
        more = later.more if later.gone else self.more + later.more
        return _Written(fields, more, later.kind, self.gone or later.gone)


class DryRun:
    """The dry run of one request, of as many plans as it takes: each sees what those before it would have written.

    `entries` are those that the event stream would get, as it would have them."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self._handed_on = NOTHING_WRITTEN
        self._written: Mapping[str, msgspec.Raw] = {}
        self._routes: dict[str, _Written] = {}

    def topics(self, keys: Keys) -> set[str]:
        """Return the topics of whose routes rows would be written."""
        prefixes = keys.route(""), keys.mapping("")
        return {
            key.removeprefix(prefix) for key in self._routes for prefix in prefixes if key.startswith(prefix)
        }

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
        if script.name == SWEEP:
            return 0
        before = self._handed_on if script.name != READ_ROUTES else self._with_routes(script)
        args = (*script.args, before)
        handed_on, routes, entries, *reply = yield ScriptCall(script.name, script.keys, args, dry=True)
        self._handed_on = handed_on
        self._written = decoded(handed_on, _HandedOn).keys
        if script.name != READ_ROUTES:
            for key, written in decoded(routes, dict[str, _Written]).items():
                earlier = self._routes.get(key)
                self._routes[key] = written if earlier is None else earlier.followed_by(written)
        self.entries += map(pairs, entries)
        return reply[0] if reply else None  # which ends a list

    def _with_routes(self, reading: ScriptCall) -> bytes:
        """Return what is handed on to a script that reads the routes of topics."""
        prefix = reading.keys[0].partition("}")[0] + "}:"
        names = [f"{prefix}{table}:{topic}" for topic in map(str, reading.args) for table in OF_ROUTES]
        rows = {name: self._routes[name] for name in names if name in self._routes}
        state = decoded(self._handed_on, _HandedOn)
        return as_json({"count": state.count, "keys": dict(state.keys) | rows})

    def _command(self, command: Call) -> Plan[Any]:
        name = str(command.args[0])
        if name in KEYLESS:
            return (yield command)
        key = str(command.args[1])
        if name in READS and key not in self._written:
            reply = yield command
            return self._routes[key].shown(command, reply) if key in self._routes else reply
        if name not in IN_SCRIPT:
            raise RuntimeError(f"a dry run cannot answer {name} of what it wrote")
        reply = yield from self._script(ScriptCall("run_command", (key,), command.args))
        return pairs(reply) if name == "HGETALL" else reply
