"""The key that seals the cookies of the console: one for all HTTP workers of a namespace, made by the first."""

from registry.keys import Keys
from registry.plans import Batch, Plan, call

__all__ = ["session_key"]


def session_key(keys: Keys, new: str) -> Plan[str]:
    """Return the key of the namespace, `new` where it had none."""
    _, stored = yield Batch((call("SET", keys.access_sessions, new, "NX"), call("GET", keys.access_sessions)))
    return str(stored)
