"""All that a namespace holds, in a form that two of them share: without its name, and without times."""

import re
from typing import Any, Final

from registry.keys import Keys
from registry.plans import pairs
from tests.registry.stored import Store

AGED_MS: Final = 3 * 3_600_000
"""How much is left of a lease that a test lets grow old; a renewed one has more than twice of it."""
LEFT_OUT: Final = re.compile(r"events|events:.*|repair|pushed:.*|kv_bytes:.*")
"""Keys that hold the stream, which `Entries` reads, or times only."""
NAMES_ONLY: Final = re.compile(r"owed|lapses|gone|refused|kv_versions:.*")
"""Keys whose fields are names, with times or ids of entries."""
TIMES: Final = ("since_ms", "last_seen_ms", "lease_ms", "effective_ms", "closed_ms", "inc")
READ: Final = """
local read = { string = { "GET" }, set = { "SMEMBERS" }, hash = { "HGETALL" } }
read.zset = { "ZRANGE", 0, -1, "WITHSCORES" }
local found = {}
for _, key in ipairs(redis.call("KEYS", ARGV[1])) do
  local of_type = redis.call("TYPE", key).ok
  local command = read[of_type]
  if command then
    found[#found + 1] = { key, of_type, redis.call(command[1], key, unpack(command, 2)) }
  end
end
return found
"""
"""Returns each key with its type and all that it holds, but streams."""
OF_MEMBER: Final = ("since", "applied")
"""Fields that are not compared: a time, and whether a short cut may be taken, which shows when one is."""
Contents = dict[str, Any]


def contents(store: Store, keys: Keys, now_ms: int) -> Contents:
    """Return what each key holds. Of a lease it is whether it is over, aged or renewed."""
    found = {}
    for key, of_type, value in store.eval(READ, 0, f"{re.sub(r'[^a-z:]', '?', keys.prefix)}*"):
        name = key.removeprefix(keys.prefix)
        if not LEFT_OUT.fullmatch(name):
            found[name] = _plain(name, _typed(of_type, value), now_ms)
    return found


def _typed(of_type: str, value: Any) -> Any:
    match of_type:
        case "set":
            return set(value)
        case "hash" | "zset":
            return pairs(value)
    return value


def _plain(name: str, value: Any, now_ms: int) -> Any:
    if NAMES_ONLY.fullmatch(name):
        return sorted(value)
    if name == "leases" and isinstance(value, dict):
        return {member: lease(float(end), now_ms) for member, end in value.items()}
    if name.startswith("alive:") and isinstance(value, str) and value.isdecimal():
        return lease(int(value), now_ms)
    if name.startswith("member:") and isinstance(value, dict):
        return {name: text for name, text in value.items() if name not in OF_MEMBER}
    return value


def lease(end_ms: float, now_ms: int) -> str:
    """Return how far away its end is."""
    if end_ms <= now_ms:
        return "over"
    return "aged" if end_ms - now_ms <= 2 * AGED_MS else "renewed"


class Entries:
    """The entries of a namespace's stream, each read once; `number` gives that of an id."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys
        self._after = "-"
        self._numbers = {"": ""}

    def new(self) -> list[dict[str, str]]:
        """Return the fields of the entries since the last call."""
        read = self._store.xrange(self._keys.events, min=self._after)
        if read:
            self._after = f"({read[-1][0]}"
            self._numbers |= {entry_id: fields["seq"] for entry_id, fields in read}
        return [self._plain(fields) for _, fields in read]

    def number(self, entry_id: str) -> str:
        return self._numbers[entry_id]

    def _plain(self, fields: dict[str, str]) -> dict[str, str]:
        return {
            name: "then" if name in TIMES else value.replace(self._keys.prefix, "")
            for name, value in fields.items()
        }
