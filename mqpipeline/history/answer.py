"""A topic's route as the body of 105's answer: TopicRouteData as JSON."""

from collections.abc import Iterable
from typing import Any

from mqpipeline.history.routes import Route


def answer_of(routes: Iterable[Route]) -> dict[str, Any] | None:
    """Return TopicRouteData of one topic, brokers by name; None where no broker served it.

    Filter servers, order configuration and static topics are in no table, so they are not in it."""
    listed = sorted(routes, key=lambda route: route.broker)
    if not listed:
        return None
    return {
        "brokerDatas": [_broker_data(route) for route in listed],
        "filterServerTable": {},
        "queueDatas": [_queue_data(route) for route in listed],
    }


def _broker_data(route: Route) -> dict[str, Any]:
    shown = route.shown
    data: dict[str, Any] = {
        "brokerAddrs": {str(number): address for number, address in sorted(shown.addrs.items())},
        "brokerName": route.broker,
        "cluster": shown.cluster,
        "enableActingMaster": shown.acting,
    }
    return data if shown.zone is None else data | {"zoneName": shown.zone}


def _queue_data(route: Route) -> dict[str, Any]:
    shown = route.shown
    return {
        "brokerName": route.broker,
        "perm": shown.perm,
        "readQueueNums": shown.read_queues,
        "topicSysFlag": shown.sys_flag,
        "writeQueueNums": shown.write_queues,
    }
