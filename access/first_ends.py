"""When the first key, token and client certificate end, for metrics."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Final

from access.principals import Principals
from access.proof import ProofKind

__all__ = ["FirstEnds"]

KINDS: Final[Mapping[ProofKind, str]] = {"acl": "key", "token": "token", "mtls": "cert"}
"""As the metric names them."""


class FirstEnds:
    """Those of principals, which are looked through again when they are others, or an end has come."""

    def __init__(self) -> None:
        self._principals: Principals | None = None
        self._ends: Mapping[ProofKind, float | None] = {}
        self._until = -inf
        self._shown: set[ProofKind] = set()

    def read(
        self, principals: Principals, now: float, certificate: float | None = None
    ) -> Iterator[tuple[str, float]]:
        """Yield kinds with their first ends behind `now`, in Unix s: infinite where none ends any more, and no kind of
        which none ever ended. `certificate` is the first end of certificates that were shown."""
        if principals is not self._principals or now >= self._until:
            self._principals, self._ends = principals, principals.first_ends(now)
            self._until = min((end for end in self._ends.values() if end is not None), default=inf)
        for kind, label in KINDS.items():
            end = certificate if kind == "mtls" else self._ends[kind]
            if end is not None:
                self._shown.add(kind)
            if kind in self._shown:
                yield label, inf if end is None else end
