"""Entries `access_changed`: how tokens and revocations are changed, and what processes notice of credentials and rules.

What many processes notice is reported by the first of them: the hash `access:reported` has what was reported last."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from registry.clock import now_ms
from registry.errors import TableFull
from registry.keys import Keys
from registry.plans import Origin, Plan, ScriptCall, as_json, call

__all__ = ["DAY_MS", "MOST", "Fields", "Row", "change", "report_end", "report_rules"]

DAY_MS: Final = 86_400_000
MOST: Final = {"tokens": 1_000, "revoked": 10_000, "reported": 10_000}
"""Fields of each table."""
ENDS_KEPT_MS: Final = 2 * DAY_MS
"""Reported ends that are so long ago go: no process reports one of more than a day ago."""
RULES: Final = "rules"
END: Final = "end:"

Row: TypeAlias = tuple[str, str, str, str]
"""A table, a field, its text before and after; "" is none, "*" before is any."""
Fields: TypeAlias = Sequence[tuple[str, str]]
"""Those of an entry."""


def change(
    keys: Keys,
    cause: str,
    fields: Fields,
    rows: Sequence[Row],
    origin: Origin,
    full: TableFull,
) -> Plan[str]:
    """Write rows with their entry and return its id; "" if another writer was faster. Raises `full` if a table
    has no room."""
    request = {
        "origin": origin,
        "cause": cause,
        "fields": [word for field in fields for word in field],
        "rows": rows,
        "most": MOST,
    }
    tables = (keys.events_meta, keys.access_tokens, keys.access_revoked, keys.access_reported)
    reply = str((yield ScriptCall("set_access", tables, (as_json(request),))))
    if reply == "full":
        raise full
    return "" if reply == "changed" else reply


def _full() -> TableFull:
    return TableFull("a report of access", MOST["reported"], "reports", "delete the key access:reported")


def report_end(keys: Keys, principal: str, credential: str, end_ms: int, origin: Origin) -> Plan[str]:
    """Report that a credential has come to its end; return the event id, "" if that was reported."""
    field, text = f"{END}{credential}", str(end_ms)
    while True:
        now = yield from now_ms()
        reported: Mapping[str, str] = yield call("HGETALL", keys.access_reported)
        if reported.get(field) == text:
            return ""
        old = [
            ("reported", name, end, "")
            for name, end in reported.items()
            if name != field and name.startswith(END) and _is_before(end, now - ENDS_KEPT_MS)
        ]
        rows = [*old, ("reported", field, reported.get(field, ""), text)]
        fields = (("principal", principal), ("credential", credential), ("expires_ms", text))
        if event_id := (yield from change(keys, "expired", fields, rows, origin, _full())):
            return event_id


def report_rules(keys: Keys, state: str, fields: Callable[[str], Fields], origin: Origin) -> Plan[str]:
    """Report that other rules are in force than those that were reported last, and are `state`; `fields` returns the
    entry's, for those that were. Return the event id, "" where they are the same, or the first ever."""
    while True:
        before: str = (yield call("HGET", keys.access_reported, RULES)) or ""
        if before == state:
            return ""
        if not before:
            yield call("HSET", keys.access_reported, RULES, state)
            return ""
        rows = [("reported", RULES, before, state)]
        if event_id := (yield from change(keys, "rules", fields(before), rows, origin, _full())):
            return event_id


def _is_before(text: str, at_ms: int) -> bool:
    return not (text.isascii() and text.isdecimal()) or int(text) < at_ms
