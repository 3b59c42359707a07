"""The tables that history is read from, and reading no more of them than a question needs."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.schemas import route_bucket

BUCKET = "bucket"
MONTH = "month"
FOREVER = 2**63 - 1


class Tables(NamedTuple):
    """BROKER_SESSIONS, BROKER_VERSIONS and ROUTE_VERSIONS (mqpipeline/schemas.py).

    With their partition columns, `bucket` and `month`, only the files that matter are read; without them all are."""

    sessions: DataFrame
    brokers: DataFrame
    routes: DataFrame

    def of_namespace(self, namespace: str) -> "Tables":
        """What one name server left."""
        return Tables(*(frame.where(F.col("namespace") == namespace) for frame in self))

    def of_topic(self, topic: str) -> "Tables":
        """Routes of one topic only, which lie in one bucket."""
        routes = self.routes.where(F.col("topic") == topic)
        if BUCKET in routes.columns:
            routes = routes.where(F.col(BUCKET) == bucket_of(topic))
        return self._replace(routes=routes)


def bucket_of(topic: str) -> int:
    """The folder of a topic's route versions."""
    return route_bucket(topic.encode())


def during(versions: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """Those of a table with `from_ms` and `to_ms` that hold at some instant of [from_ms, to_ms]."""
    return not_ended(versions, from_ms).where(
        f"from_ms <= {to_ms:d} and (to_ms is null or to_ms > {from_ms:d})"
    )


def not_ended(frame: DataFrame, at_ms: int) -> DataFrame:
    """Without the folders of what had ended before that instant's month; `open` sorts after every month."""
    if MONTH not in frame.columns:
        return frame
    return frame.where(f"cast({MONTH} as string) >= date_format(timestamp_millis({at_ms:d}), 'yyyy-MM')")
