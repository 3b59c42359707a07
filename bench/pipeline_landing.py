"""The rate (events a second and core) of landing: from the stream, through the source, into the landing's files.

`python -m mqnamesrv.throwaway python -m bench.pipeline_landing [--copies N] [--cores N]` writes half a year of made-up
events of 600 brokers and 3,000 topics into streams, with times pressed into one day as a busy day has them, then lands
batches of as many as there are. The first batch warms Spark up; each prints its events per second of the clock, and
per second of the processors that Spark and its Python workers took.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import SparkSession

from bench.servers import Server
from mqpipeline.cli.sample import write
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.scale import Entry, Scale, entries
from mqpipeline.session import spark_session
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import StreamPartition

SCALE = Scale(brokers=600, topics=3_000, brokers_of_topic=5, weeks=26, namespace="made")
PRESSED = 26 * 7  # days into one
SETTINGS = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "4"}


def fill(url: str, copies: int) -> int:
    """Write the history as that of each namespace; return its number of entries."""
    with Store(options_of({"url": url, "streams": SCALE.stream})) as store:
        count = write(store.client, SCALE.stream, _in_a_day())
        whole: Any = store.client.dump(SCALE.stream)
        for name in _names(copies):
            store.client.restore(EVENTS_LAND.stream(name), 0, whole)
    return count


def _in_a_day() -> Iterator[Entry]:
    for number, entry in enumerate(entries(SCALE)):
        at_ms = SCALE.start_ms + (entry.id_ms - SCALE.start_ms) // PRESSED
        yield Entry(at_ms, number, entry.fields)


def _names(copies: int) -> list[str]:
    return [f"copy-{number}" for number in range(copies)]


class Timed(Landing):
    """A landing that prints the time of each batch."""

    def __init__(self, spark: SparkSession, *of: Any) -> None:
        super().__init__(spark, *of)
        gateway: Any = spark.sparkContext._gateway
        self._server = Server("spark", 0, gateway.proc.pid)

    def _land(self, partitions: Sequence[StreamPartition]) -> None:
        landed, began, used = self._entries, time.monotonic(), self._server.cpu_seconds()
        super()._land(partitions)
        took, used = time.monotonic() - began, self._server.cpu_seconds() - used
        new = self._entries - landed
        print(
            f"batch {self.progress.batch}: {new} events, {new / took:,.0f} a second, {new / used:,.0f} a CPU-second",
            flush=True,
        )

    @property
    def _entries(self) -> int:
        return sum(stream.entries for stream in self.progress.streams.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=120, help="of the history, each a namespace")
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--cores", type=int, default=1)
    given = parser.parse_args()
    url = os.environ["REDIS_URL"]
    spark = spark_session("bench", {**SETTINGS, "spark.master": f"local[{given.cores}]"})
    count = fill(url, given.copies)
    print(f"{given.copies} streams of {count} events", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        each = str(count * given.copies // given.batches)
        source = {"url": url, "maxEntriesPerBatch": each, "partitions": str(given.cores)}
        landing = Timed(spark, folder, EVENTS_LAND, source, tuple(_names(given.copies)))
        landing.land_available()
        landing.close()
    spark.stop()


if __name__ == "__main__":
    main()
