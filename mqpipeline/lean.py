"""Runs of few events: planning and compiling are nearly all of their time, so Spark is set up to do less of both."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession
from redis.exceptions import RedisError

from mqpipeline.lake.log import LakeError, opened
from mqpipeline.lake.place import place
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import said_by
from mqpipeline.options import ALL, Options
from mqpipeline.session import LOGGING, SUBMITTED, settings_within
from pyspark_redis_stream.connection import AWAY, Store
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import Streams

EVENTS_MOST: Final = 20_000
"""In all, landed or still in the streams. With 200,000, compiled code and several partitions are quicker."""
PLANNING: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a broadcast is a job of its own
    "spark.sql.optimizer.disableHints": "true",  # so is one that is asked for
}
"""What a session may be given at any time."""
LEAN: Final = {
    **PLANNING,
    "spark.default.parallelism": "1",
    "spark.driver.defaultJavaOptions": f"{LOGGING} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def settings(options: Options) -> Mapping[str, str]:
    """Return what a run with these options asks of a Spark session of its own. Nothing if there are many events, or if
    their number is not known before Spark runs: the tables are elsewhere, or the store does not answer."""
    try:
        return LEAN if _events(options) <= EVENTS_MOST else {}
    except (OSError, ValueError, LakeError, RedisError, *AWAY):  # the run itself says what is wrong
        return {}


@contextmanager
def planning_for(spark: SparkSession, events: int) -> Iterator[None]:
    """Within, Spark plans as is best for so many events: a session that lasts may begin with few and get many. One that
    was submitted to plans as its caller chose."""
    few = events <= EVENTS_MOST and SUBMITTED not in os.environ
    with settings_within(spark, PLANNING if few else {}):
        yield


def _events(options: Options) -> int:
    """Return how many events there are at most. Raises ValueError if the tables are not in a folder of this machine."""
    landed = _landed(options.warehouse)
    names = [EVENTS_LAND.stream(namespace) for namespace in options.namespaces]
    of = {"pattern": EVENTS_LAND.stream(ALL)} if ALL in options.namespaces else {"streams": ",".join(names)}
    source = options_of({"url": options.url, "retrySeconds": "0", **of})
    with Store(source) as store:
        streams = Streams(source, store)
        for name in streams.names():
            newest = streams.newest(name)
            written = newest.number(b"seq") if newest else None
            landed[name] = max(landed.get(name, 0), written or 0)
    return sum(landed.values())


def _landed(warehouse: str) -> dict[str, int]:
    """Return how many entries of each stream have landed."""
    events = place(warehouse).under(EVENTS_LAND.table.name)
    if events.folder is None:
        raise ValueError(f"{warehouse} is not on this machine")
    log = opened(events, EVENTS_LAND.table)
    said = said_by(log) if log else None
    return {name: stream.entries for name, stream in (said or {}).items()}
