"""Until when a cached reply is true: until a generation moves or a time passes."""

from math import inf
from typing import Protocol


class Source(Protocol):
    """What replies are made of; `generation` moves whenever one of them may have become untrue."""

    generation: int


class Stamp:
    """True while the source's generation is the one noted here, and before `until` on the clock of the cache."""

    __slots__ = ("generation", "source", "until")

    def __init__(self, source: Source, until: float = inf) -> None:
        self.source = source
        self.generation = source.generation
        self.until = until

    def is_valid(self, now: float) -> bool:
        """Return whether replies with this stamp are true at `now`."""
        return self.generation == self.source.generation and now < self.until

    def renew(self, generation: int, until: float) -> None:
        """Be true from that generation of the source on, until another time."""
        self.generation, self.until = generation, until
