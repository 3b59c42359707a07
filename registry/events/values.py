"""Fields of entries as values: JSON and numbers where a field has them, and text where they cannot be read."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from registry.events.entry import Event, EventKind

COMMON: Final = frozenset({"v", "kind", "cause", "inc", "seq", "part", "op", "actor", "peer"})
"""Fields of every kind."""
JSON: Final = frozenset(
    {
        *("addrs", "also", "brokers", "changes", "clusters", "drain", "filters", "hold", "holder", "keys"),
        *("members", "roles", "rows", "settings", "values"),
    }
)
JSON_OF: Final[Mapping[str, frozenset[str]]] = {
    EventKind.ACCESS_CHANGED: frozenset({"added", "changed", "removed"}),
    EventKind.HOLD_CHANGED: frozenset({"before", "after"}),
    EventKind.DRAIN_CHANGED: frozenset({"before", "after"}),
    EventKind.DRIFT_CHANGED: frozenset({"before", "after"}),
    EventKind.TABLES_REPAIRED: frozenset({"topics"}),
}
"""Of these kinds only: `before` and `after` of a KV entry are text, whatever it holds."""
NUMBERS: Final = frozenset(
    {
        *("acting", "after_bytes", "before_bytes", "closed_ms", "count", "effective_ms", "entries", "epoch"),
        "expires_ms",
        *("id", "kv", "last_seen_ms", "lease_ms", "mappings", "round", "since_ms", "timeout_ms", "topics"),
    }
)
BEFORE: Final = "_before"
DIGITS: Final = 15
"""Numbers of so many digits are exact in every reader of JSON."""
LEVELS: Final = 16
"""Structures of entries have four; a deeper one is no server's, and few readers could read it."""
INT_BITS: Final = 63


def values_of(event: Event) -> dict[str, Any]:
    """Return the fields of the entry's kind, decoded; those that cannot be decoded as text."""
    special = JSON_OF.get(event.kind, frozenset())
    return {
        name: _value(name.removesuffix(BEFORE), text, special)
        for name, text in event.fields.items()
        if name not in COMMON
    }


def number_or_none(text: str) -> int | None:
    """Return a number that every reader of JSON has exactly; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None


def _value(name: str, text: str, special: frozenset[str]) -> Any:
    if name in JSON or name in special:
        return _structure(text)
    number = number_or_none(text) if name in NUMBERS else None
    return text if number is None else number


def _structure(text: str) -> Any:
    try:
        value = msgspec.json.decode(text.encode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return text
    return value if _is_plain(value, LEVELS) else text


def _is_plain(value: Any, levels: int) -> bool:
    """Return whether JSON can be written of it again, in no more levels."""
    if isinstance(value, dict):
        return levels > 0 and all(_is_plain(member, levels - 1) for member in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(member, levels - 1) for member in value)
    return not isinstance(value, int) or value.bit_length() <= INT_BITS
