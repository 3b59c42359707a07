"""Permission bits of a topic's queues on a broker (RocketMQ PermName)."""

from typing import Final

PERM_PRIORITY: Final = 8
PERM_READ: Final = 4
PERM_WRITE: Final = 2
PERM_INHERIT: Final = 1
