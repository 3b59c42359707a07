"""What a connection has proven by itself: by the certificate that it has shown."""

from typing import Final

import msgspec

from access.proof import Proof

__all__ = ["UNKNOWN", "Standing"]


class Standing(msgspec.Struct, frozen=True):
    """What a connection has proven by itself, under which `generation` of principals; a certificate that is known and
    bad bars classes, as a number, that others need no proof for."""

    generation: int
    proof: Proof | None = None
    barred: int = 0


UNKNOWN: Final = Standing(-1)
"""Of a connection whose first bytes have not come."""
