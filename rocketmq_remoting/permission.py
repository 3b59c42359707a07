"""Permission bits of a topic's queues on a broker (RocketMQ PermName)."""

from typing import Final

PERM_PRIORITY: Final = 8
PERM_READ: Final = 4
PERM_WRITE: Final = 2
PERM_INHERIT: Final = 1


def perm_text(perm: int) -> str:
    """Return `RW-`, as PermName.perm2String."""
    bits = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))
    return "".join(letter if perm & bit else "-" for bit, letter in bits)
