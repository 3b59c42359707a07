"""When credentials proved their principals last: the hash `access:used`, by the ids of credentials."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from registry.damage.key_types import healed, types_of_lists
from registry.keys import Keys
from registry.plans import Origin, Plan, ScriptCall, call

__all__ = ["CREDENTIALS_MOST", "note_uses", "uses"]

CREDENTIALS_MOST: Final = 20_000
"""Credentials whose use is kept: of more, those that were used longest ago go."""
AT_ONCE: Final = 1_000
"""Credentials of one script."""


def note_uses(keys: Keys, ages_ms: Mapping[str, int], origin: Origin) -> Plan[None]:
    """Note that credentials proved their principals, by their ids, and how long ago each did so last.

    Ages, so that no clock counts but that of Redis; an earlier use than the one that is noted changes nothing."""
    rows = [(id, str(age)) for id, age in ages_ms.items()]
    for start in range(0, len(rows), AT_ONCE):
        words = [word for row in rows[start : start + AT_ONCE] for word in row]
        yield from healed(keys, origin, partial(_note, keys, words), partial(types_of_lists, keys))


def uses(keys: Keys) -> Plan[dict[str, int]]:
    """Return in which Unix minute each credential was used last; what cannot be read is left out."""
    rows: Mapping[str, str] = yield call("HGETALL", keys.access_used)
    return {id: int(text) for id, text in rows.items() if text.isascii() and text.isdecimal()}


def _note(keys: Keys, words: list[str]) -> Plan[None]:
    yield ScriptCall("note_uses", (keys.access_used,), (CREDENTIALS_MOST, *words))
