"""Changes as a redis-namesrv records them, over HTTP. Needs the extra `http`."""

from mqns.changes.messages import ChangeMessage, Entry, ResetCause
from mqns.changes.stream import ChangeStream

__all__ = ["ChangeMessage", "ChangeStream", "Entry", "ResetCause"]
