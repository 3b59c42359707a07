"""Holds of leases: the rule by which a mass expiry is one, and an operator's end of it.

A hold is set by whichever script next judges leases (lua/includes/lease.lua); scripts read the rule from the store,
where workers write it.
"""

from typing import Final

import msgspec

from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin, Plan, ScriptCall, as_json

LONGEST_MS: Final = 365 * 86_400_000
"""The longest time of a hold; Lua spells greater times with an exponent."""


class HoldRule(msgspec.Struct, frozen=True):
    """When lapses are a mass expiry: at least so many members within 30 s, and this percentage of all.

    It is held for `longest_ms` at most."""

    longest_ms: int
    percent: int
    least: int

    @classmethod
    def of(cls, options: Options) -> "HoldRule | None":
        """Return the rule of a name server; None without expiryHoldMillis."""
        if not options.expiry_hold_millis:
            return None
        longest_ms = min(options.expiry_hold_millis, LONGEST_MS)
        return cls(longest_ms, options.expiry_hold_share, options.expiry_hold_least)

    def text(self) -> str:
        """Return the rule as lua/tick.lua takes it."""
        return f"{self.longest_ms},{self.percent},{self.least}"


def release(keys: Keys, origin: Origin) -> Plan[str]:
    """End a hold of either cause; return the id of the entry, "" when there is none."""
    event_id = yield ScriptCall("release_hold", (keys.events_meta,), (as_json({"origin": origin}),))
    return str(event_id)
