"""The key that seals the cookies of the console: one for all HTTP workers of a namespace, made by the first."""

import re
from typing import Final

from registry.keys import Keys
from registry.plans import Batch, Plan, call

__all__ = ["session_key"]

KEY: Final = re.compile("[A-Za-z0-9_-]{43}=")


def session_key(keys: Keys, new: str) -> Plan[str]:
    """Return the key of the namespace, `new` where it had none, or something that is none: 32 bytes in Base64."""
    key = keys.access_sessions
    _, stored = yield Batch((call("SET", key, new, "NX"), call("GET", key)))
    if stored is None or not KEY.fullmatch(stored):  # evicted since, or written by another program
        yield call("SET", key, new)
        return new
    return str(stored)
