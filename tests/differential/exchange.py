"""One request to one of Java's servers and to this one."""

from msgspec import Struct

from tests.differential.answers import Seen
from tests.differential.world import Ask, State

CUT = -1
"""A request code: the connection `over` ends."""
BROKEN = -2
"""A request code: the bytes that the ext field `frame` names (`tests.differential.frames`)."""


class Exchange(Struct, frozen=True):
    """Both replies, and the state before. Of a request that only reads the tables, `behind` is the request before,
    whose effect `before` already shows."""

    release: str
    ask: Ask
    java: Seen
    ours: Seen
    before: State
    behind: Ask | None = None
