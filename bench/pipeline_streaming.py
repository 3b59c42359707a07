"""How soon events land while `mqpipeline stream` runs, and what a small batch takes.

`python -m mqnamesrv.throwaway python -m bench.pipeline_streaming [--seconds N] [--batches N]` lands batches of 20
entries one after the other and prints the time of processors that each took, of this process, Java and its Python
workers; then lands every 5 s while one event a second comes, and while 1,000 come, and prints the time from an event's
id to the end of the batch that has it.
"""

import argparse
import os
import tempfile
import threading
import time
from contextlib import closing
from typing import Any

from pyspark.sql import SparkSession

from bench.servers import Server
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.session import spark_session
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import options_of

NAMESPACE = "bench"
STREAM = EVENTS_LAND.stream(NAMESPACE)
OF_A_BATCH = 20
WARM = 5
"""Batches before those that are measured."""
TRIGGER_S = 5.0
"""As `mqpipeline stream` has it."""
RATES = (1, 1_000)
PERCENTILES = (50, 95, 99, 100)


class Events:
    """Writes events, as many as are asked for."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._inc = int(time.time() * 1000)
        self._seq = 0

    def write(self, count: int) -> list[int]:
        """Write them at once and return the times of their ids, in ms."""
        with self._client.pipeline(transaction=False) as pipe:
            for _ in range(count):
                self._seq += 1
                named = {"v": 1, "kind": "kv_changed", "cause": "put", "key": "k"}
                pipe.xadd(STREAM, {**named, "inc": self._inc, "seq": self._seq})
            return [int(entry_id.partition(b"-")[0]) for entry_id in pipe.execute()]


def cpu_of_small_batches(spark: SparkSession, landing: Landing, events: Events, batches: int) -> None:
    """Print what batches take that follow each other."""
    gateway: Any = spark.sparkContext._gateway
    server = Server("spark", 0, gateway.proc.pid)
    used: list[float] = []
    for _ in range(WARM + batches):
        events.write(OF_A_BATCH)
        before = server.cpu_seconds() + time.process_time()
        landing.land_available()
        used.append(server.cpu_seconds() + time.process_time() - before)
    measured = sorted(used[WARM:])
    print(
        f"a batch of {OF_A_BATCH} entries: {sum(measured) / batches:.3f} CPU-s on average, median "
        f"{measured[batches // 2]:.3f}, most {measured[-1]:.3f}, of {batches}",
        flush=True,
    )


def delays(landing: Landing, events: Events, rate: int, seconds: float) -> list[float]:
    """Return how long each event took to land, in s."""
    pending: list[int] = []
    ended = threading.Event()

    def write() -> None:
        begun = time.monotonic()
        for second in range(int(seconds)):
            pending.extend(events.write(rate))
            time.sleep(max(0.0, begun + second + 1 - time.monotonic()))
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    found: list[float] = []
    while not ended.is_set() or pending:
        landing.land_available()
        now_ms, at_ms = time.time() * 1000, landing.progress.streams[STREAM].at.ms
        landed = [ms for ms in pending if ms < at_ms or (ended.is_set() and ms <= at_ms)]
        del pending[: len(landed)]
        found += [(now_ms - ms) / 1000 for ms in landed]
        ended.wait(TRIGGER_S)
    writer.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="of each rate")
    parser.add_argument("--batches", type=int, default=50)
    given = parser.parse_args()
    url = os.environ["REDIS_URL"]
    spark = spark_session("bench")
    source = {"url": url}
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-streaming-") as folder,
        Store(options_of({**source, "streams": STREAM})) as store,
        closing(Landing(spark, folder, EVENTS_LAND, source, (NAMESPACE,), "pipeline:bench")) as landing,
    ):
        events = Events(store)
        cpu_of_small_batches(spark, landing, events, given.batches)
        for rate in RATES:
            found = sorted(delays(landing, events, rate, given.seconds))
            said = ", ".join(
                f"p{percent} {found[-(-len(found) * percent // 100) - 1]:.1f} s" for percent in PERCENTILES
            )
            print(f"{rate} events a second, {len(found)} landed: {said}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
