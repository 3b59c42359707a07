"""What `lua/register.lua` decides of a registration."""

from typing import Any, Self

import msgspec
from msgspec.structs import replace


class Decision(msgspec.Struct, frozen=True):
    """`token` is all that it rests on. `epoch` is "" for a broker that will get a new one."""

    token: str
    epoch: str
    generation: int
    first: bool
    every: bool
    writes: bool
    strips: bool
    same: bool

    @classmethod
    def of(cls, reply: list[Any]) -> Self:
        """From the script's {"go", ...}."""
        _, token, epoch, generation, *flags = reply
        return cls(token, epoch, int(generation), *(flag == "1" for flag in flags))

    @property
    def at(self) -> str:
        """The broker's state, and whether and how this member's topics are stored in it."""
        return f"{self.epoch}:{self.generation}:{self.writes:d}{self.strips:d}"

    def done(self, epoch: str, generation: int) -> Self:
        """The same for the state that the registration left; it counts for a new data version."""
        return replace(self, epoch=epoch, generation=generation, first=False, every=True)
