"""Holds of leases: the rule by which a mass expiry is one, and an operator's end of it.

A hold is set by whichever script next judges leases (lua/includes/lease.lua); scripts read the rule from the store,
where workers write it.
"""

from typing import Final

import msgspec

from registry.keys import Keys
from registry.options import Options
from registry.plans import Act, Plan, ScriptCall, as_json

LONGEST_MS: Final = 365 * 86_400_000
"""Of a hold; Lua spells greater times with an exponent."""


class HoldRule(msgspec.Struct, frozen=True):
    """When lapses are a mass expiry: at least so many members within 30 s, and this share (percent) of all.

    It is held for `longest_ms` at most."""

    longest_ms: int
    share: int
    least: int

    @classmethod
    def of(cls, options: Options) -> "HoldRule | None":
        """That of a name server; None for one that holds none."""
        if not options.expiry_hold_millis:
            return None
        longest_ms = min(options.expiry_hold_millis, LONGEST_MS)
        return cls(longest_ms, options.expiry_hold_share, options.expiry_hold_least)

    def text(self) -> str:
        """As lua/tick.lua takes it."""
        return f"{self.longest_ms},{self.share},{self.least}"


def release(keys: Keys, act: Act) -> Plan[str]:
    """End a hold, whatever it was set for; the id of the entry, "" when there is none."""
    reply = yield ScriptCall("release", (keys.events_meta,), (as_json({"act": act}),))
    return str(reply[0])
