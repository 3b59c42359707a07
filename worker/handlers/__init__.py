"""A handler a request code; importing this package fills `worker.dispatch.HANDLERS`."""

from worker.handlers import (
    brokers,
    clusters,
    configuration,
    kv,
    permissions,
    readiness,
    registration,
    routes,
    topics,
)

__all__ = [
    "brokers",
    "clusters",
    "configuration",
    "kv",
    "permissions",
    "readiness",
    "registration",
    "routes",
    "topics",
]
