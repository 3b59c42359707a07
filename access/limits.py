"""Limits of a principal: the names that its requests may have."""

from typing import Final

import msgspec

from access.named import Named
from access.patterns import Patterns

__all__ = ["UNLIMITED", "Limits"]


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
