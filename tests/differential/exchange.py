"""One request to one of Java's servers and to ours."""

from msgspec import Struct

from tests.differential.answers import Seen
from tests.differential.world import Ask, State

CUT = -1
"""As the code of a request: the connection `over` ends."""
BROKEN = -2
"""As the code of a request: the bytes that the ext field `frame` names (`tests.differential.frames`)."""


class Exchange(Struct, frozen=True):
    """Both answers, and what was known before. Of a request that only looks at the tables, `behind` is what it
    comes after, and `before` already shows what that did."""

    release: str
    ask: Ask
    java: Seen
    ours: Seen
    before: State
    behind: Ask | None = None
