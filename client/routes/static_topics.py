"""Static topics (5.x): queues whose number stays while they move between brokers."""

from collections.abc import Iterable, Mapping
from typing import Final

from client.routes.queues import QueueRun
from remoting.topic_queue_mapping import METADATA_SCOPE_GLOBAL, TopicQueueMappingInfo

MOCK_PREFIX: Final = "__syslo__"
"""Broker names of static topics begin with it."""
NO_BROKER: Final = "__syslo__none__"
"""Who serves a queue that no broker has."""


def mock_broker_name(scope: str) -> str:
    """`__global__` -> `__syslo__global__`: the broker name in the queues of that scope."""
    return MOCK_PREFIX + (scope[2:] if scope == METADATA_SCOPE_GLOBAL else scope)


def queue_runs(mappings: Iterable[TopicQueueMappingInfo]) -> list[QueueRun]:
    """All queues, scope by scope: as many as the mapping that knows of most."""
    totals: dict[str, int] = {}
    for info in mappings:
        totals[info.scope] = max(totals.get(info.scope, 0), info.total_queues)
    return [QueueRun(mock_broker_name(scope), totals[scope]) for scope in sorted(totals)]


def serving_brokers(mappings: Iterable[TopicQueueMappingInfo]) -> Mapping[tuple[str, int], str]:
    """(broker name of the scope, queue) -> the broker that serves it: of several, the one of the highest epoch."""
    brokers: dict[tuple[str, int], str] = {}
    for info in sorted(mappings, key=lambda info: info.epoch):
        name = mock_broker_name(info.scope)
        brokers.update(dict.fromkeys(((name, queue) for queue in info.curr_id_map), info.bname))
    return brokers
