"""A topic's rows as the body of 105's answer: TopicRouteData as JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Row


def answer_of(rows: Iterable[Row]) -> dict[str, Any] | None:
    """The ROUTE rows of one topic -> TopicRouteData, brokers by name; None where no broker served it.

    Filter servers, order configuration and static topics are in no table, so they are not in it."""
    listed = sorted((row.asDict(recursive=True) for row in rows), key=lambda row: str(row["broker"]))
    if not listed:
        return None
    return {
        "brokerDatas": [_broker_data(row) for row in listed],
        "filterServerTable": {},
        "queueDatas": [_queue_data(row) for row in listed],
    }


def _broker_data(row: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "brokerAddrs": {str(number): address for number, address in sorted(row["addrs"].items())},
        "brokerName": row["broker"],
        "cluster": row["cluster"],
        "enableActingMaster": row["acting"],
    }
    return data if row["zone"] is None else data | {"zoneName": row["zone"]}


def _queue_data(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "brokerName": row["broker"],
        "perm": row["perm"],
        "readQueueNums": row["read_queues"],
        "topicSysFlag": row["sys_flag"],
        "writeQueueNums": row["write_queues"],
    }
