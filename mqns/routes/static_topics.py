"""Static topics (5.x): their queues keep their numbers while they move between brokers."""

from collections.abc import Iterable, Mapping
from typing import Final

from mqns.routes.queues import QueueRun
from rocketmq_remoting.topic_queue_mapping import METADATA_SCOPE_GLOBAL, TopicQueueMappingInfo

MOCK_PREFIX: Final = "__syslo__"
"""The prefix of broker names of static topics."""
NO_BROKER: Final = "__syslo__none__"
"""The broker name of a queue that no broker serves."""


def mock_broker_name(scope: str) -> str:
    """Return `__syslo__global__` for `__global__`: the broker name in the queues of a scope."""
    return MOCK_PREFIX + (scope[2:] if scope == METADATA_SCOPE_GLOBAL else scope)


def queue_runs(mappings: Iterable[TopicQueueMappingInfo]) -> list[QueueRun]:
    """Return all queues, scope by scope: as many as the largest total of its mappings."""
    totals: dict[str, int] = {}
    for info in mappings:
        totals[info.scope] = max(totals.get(info.scope, 0), info.total_queues)
    return [QueueRun(mock_broker_name(scope), totals[scope]) for scope in sorted(totals)]


def serving_brokers(mappings: Iterable[TopicQueueMappingInfo]) -> Mapping[tuple[str, int], str]:
    """Return (broker name of the scope, queue) -> serving broker; of several, the one with the highest epoch."""
    brokers: dict[tuple[str, int], str] = {}
    for info in sorted(mappings, key=lambda info: info.epoch):
        name = mock_broker_name(info.scope)
        brokers.update(dict.fromkeys(((name, queue) for queue in info.curr_id_map), info.bname))
    return brokers
