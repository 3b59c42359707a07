"""What a request names: the limits of a principal are compared with it."""

from typing import Final

import msgspec

__all__ = ["ALL_NAMES", "NOTHING", "Named", "Names"]

Names = tuple[str, ...] | None
"""Names of one kind; None is all that there are."""


class Named(msgspec.Struct, frozen=True):
    """Clusters, brokers, topics and KV namespaces; each by default none."""

    clusters: Names = ()
    brokers: Names = ()
    topics: Names = ()
    kv: Names = ()


NOTHING: Final = Named()
ALL_NAMES: Final = Named(None, None, None, None)
"""Of a list: it has what is beyond any limit, too."""
