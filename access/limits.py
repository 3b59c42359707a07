"""Limits of a principal: the names that its requests may have."""

from typing import Final, Protocol

import msgspec

from access.classes import AccessClass
from access.named import Named
from access.patterns import Patterns

__all__ = ["UNLIMITED", "Limits", "unlimited", "within"]


class Limited(Protocol):
    """A principal: `access.principal.Principal`."""

    @property
    def classes(self) -> int: ...
    @property
    def limits(self) -> "Limits": ...


class Limits(msgspec.Struct, frozen=True):
    """Patterns by kind of name, `kv` of KV namespaces; None is all. Reads are limited with `limit_reads` only."""

    clusters: Patterns | None = None
    brokers: Patterns | None = None
    topics: Patterns | None = None
    kv: Patterns | None = None
    limit_reads: bool = False

    def allow(self, named: Named) -> bool:
        """Return whether all that a request names is within the limits."""
        return (
            (self.clusters is None or self.clusters.match_all(named.clusters))
            and (self.brokers is None or self.brokers.match_all(named.brokers))
            and (self.topics is None or self.topics.match_all(named.topics))
            and (self.kv is None or self.kv.match_all(named.kv))
        )


UNLIMITED: Final = Limits()
LIMITED: Final = int(AccessClass.BROKER | AccessClass.ADMIN)
LIMITED_READS: Final = LIMITED | int(AccessClass.READ)
"""Classes in which a principal is limited, without and with limitReads."""


def unlimited(principal: Limited) -> int:
    """Return the classes of a principal whatever a request names, as a number."""
    return principal.classes & ~_limited(principal.limits)


def within(principal: Limited, named: Named, needs: int) -> int:
    """Return the classes of a principal for a request that names so much, and needs one of these classes."""
    if needs & _limited(principal.limits) and not principal.limits.allow(named):
        return unlimited(principal)
    return principal.classes


def _limited(limits: Limits) -> int:
    if limits == UNLIMITED:
        return 0
    return LIMITED_READS if limits.limit_reads else LIMITED
