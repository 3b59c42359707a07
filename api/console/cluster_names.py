"""The names of clusters, for filters of lists."""

from api.console.asking import ask, path
from api.paging import LIMIT_MOST

__all__ = ["cluster_names"]


def cluster_names() -> tuple[str, ...]:
    """Return the names of clusters, sorted, a thousand at most; none where they cannot be read."""
    reply = ask("GET", path("clusters"), {"brokers": "false", "limit": LIMIT_MOST})
    return tuple(cluster["cluster"] for cluster in reply.body["clusters"]) if reply.ok else ()
