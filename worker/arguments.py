"""Values of ext fields, which are text on the wire, as the types that Java's request classes declare.

What does not parse is as if it were missing, never an error (RocketMQ RemotingCommand.decodeCommandCustomHeader).
"""

import re
from typing import Final

from rocketmq_remoting.remoting_command import Command, SerializeType

FIELD_MOST: Final = 1 << 16
"""Characters of an ext field that is no KV value; no name or address of a broker has as many."""

BODY_MOST: Final = 256 << 10
"""Bytes of a route to register (217), which is read at once: the queue data of 1,000 brokers are half of that."""
FIELD_SHOWN: Final = 64

DECIMAL = re.compile(r"[+-]?[0-9]{1,19}")


def integer(command: Command, name: str, bits: int = 64) -> int | None:
    """Return a decimal field as a number of that width, or None; a sign is optional."""
    text = command.get(name)
    if text is None or not DECIMAL.fullmatch(text):
        return None
    number, limit = int(text), 1 << (bits - 1)
    return number if -limit <= number < limit else None


def boolean(command: Command, name: str) -> bool | None:
    """Return a boolean field: `true` in any letter case, or not; None when missing.

    Empty text in a binary header is missing too."""
    text = command.get(name)
    absent = text is None or (not text and command.serialize_type == SerializeType.ROCKETMQ)
    return None if absent else (text or "").lower() == "true"


def overlong(command: Command) -> str | None:
    """Return the name of a field that is too long to ask the store about, or None; itself cut short.

    No request of fewer bytes than FIELD_MOST has one."""
    for name, text in (command.ext or {}).items():
        if len(text) > FIELD_MOST and name != "value":
            return name[:FIELD_SHOWN]
    return None


def shown(text: str | None) -> str:
    """Return a field as remarks show it: a missing one as `null`, like Java."""
    return "null" if text is None else text
