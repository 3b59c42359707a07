"""Times of point-in-time queries over a year of made-up route versions.

`python -m bench.pipeline_history make FOLDER [--topics N] [--buckets N]`, then `… measure FOLDER`. With 100,000 topics,
each on 30 of 1,000 brokers, which start from scratch 11 times a year, there are 99 million versions, 3 million of them
open, in 64 buckets. A query of a topic reads one bucket, so one bucket is enough to measure it.
"""

import argparse
import resource
import time
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.history.questions import ask
from mqpipeline.history.reader import Reader
from mqpipeline.history.routes import routes_at
from mqpipeline.lake.place import place
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_BUCKETS, ROUTE_VERSIONS
from mqpipeline.session import spark_session
from mqpipeline.warehouse import Warehouse

HOUR_MS = 3_600_000
BEGIN_MS = 1_735_689_600_000
YEAR_MS = 365 * 24 * HOUR_MS
BROKERS, HOLDERS, EPOCHS, VERSIONS = 1000, 30, 11, 3
AWAY_MS = 60_000
EPOCH_MS = YEAR_MS // EPOCHS
AS_OF_MS = BEGIN_MS + YEAR_MS
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "4",
}


def make(spark: SparkSession, root: str, topics: int, buckets: int) -> None:
    """Write the tables as a run of the pipeline leaves them."""
    broker = "concat('broker-', b)"
    begins = f"{BEGIN_MS}L + b * 60000L + e * {EPOCH_MS}L"
    stays = (
        spark.range(BROKERS)
        .selectExpr("id as b", f"explode(sequence(0, {EPOCHS - 1})) as e")
        .selectExpr(f"{broker} as broker", f"b * {EPOCHS} + e as epoch", f"{begins} as began", "e")
        .withColumn("ended", F.expr(f"if(e < {EPOCHS - 1}, began + {EPOCH_MS - AWAY_MS}, null)"))
    )
    common = ("'default' as namespace", "1L as inc", "broker", "epoch", "'c1' as cluster")
    sessions = stays.selectExpr(
        *common,
        "0L as broker_id",
        "struct(began as ms, 0 as n) as start_id",
        "'10.0.0.1:10911' as addr",
        "began as start_ms",
        "'first' as start_cause",
        "ended as end_ms",
        "if(ended is null, null, struct(ended as ms, 0 as n)) as end_id",
        "ended as recorded_ms",
        "if(ended is null, null, 'lost') as end_cause",
        "ended as last_seen_ms",
        "ended as closed_ms",
        "false as drained",
        "false as left_censored",
        "ended is null as open",
    )
    held = stays.selectExpr(
        *common,
        "struct(began as ms, 0 as n) as from_id",
        "cast(null as string) as zone",
        "false as acting",
        "cast(null as struct<owner: string, reason: string, until_ms: bigint>) as drain",
        "began as from_ms",
        "ended as to_ms",
    )
    run = Warehouse(spark, root).begin()
    run.write(run.plan(BROKER_SESSIONS, sessions, open="open", full=True))
    run.write(run.plan(BROKER_VERSIONS, held, open="to_ms is null", full=True))
    run.write(run.plan(ROUTE_VERSIONS, _versions(spark, topics, buckets), open="to_ms is null", full=True))
    run.commit(as_of_ms=AS_OF_MS, final_ms=AS_OF_MS, folded={})


def _versions(spark: SparkSession, topics: int, buckets: int) -> DataFrame:
    """Return the rows in the order of topics, a task for each bucket."""
    named = (
        spark.range(topics)
        .selectExpr("id as t", "concat('Topic-of-some-team-', lpad(cast(id as string), 7, '0')) as topic")
        .withColumn("place", F.expr(ROUTE_VERSIONS.partitions[0].sql))
        .where(f"place < {buckets}")
        .repartitionByRange(buckets, "place")
        .sortWithinPartitions("place", "topic")
    )
    begins = f"{BEGIN_MS}L + b * 60000L + e * {EPOCH_MS}L"
    later = f"if(v = 0, 0L, v * {EPOCH_MS // VERSIONS}L + t % 86400 * 1000L)"
    following = f"if(v < {VERSIONS - 1}, (v + 1) * {EPOCH_MS // VERSIONS}L + t % 86400 * 1000L, {EPOCH_MS}L)"
    last = f"e = {EPOCHS - 1} and v = {VERSIONS - 1}"
    return (
        named.selectExpr("t", "topic", f"explode(sequence(0, {HOLDERS - 1})) as h")
        .selectExpr(
            "t", "topic", f"(t * 7 + h * 31) % {BROKERS} as b", f"explode(sequence(0, {EPOCHS - 1})) as e"
        )
        .selectExpr("*", f"explode(sequence(0, {VERSIONS - 1})) as v")
        .selectExpr(
            "*", f"{begins} + {later} as from_ms", f"if({last}, null, {begins} + {following}) as to_ms"
        )
        .selectExpr(
            "'default' as namespace",
            "1L as inc",
            "topic",
            "concat('broker-', b) as broker",
            "struct(from_ms as ms, v as n) as from_id",
            f"b * {EPOCHS} + e as epoch",
            "8 as read_queues",
            "8 as write_queues",
            "if(v = 1, 4, 6) as perm",
            "0 as sys_flag",
            "from_ms",
            "if(v = 0, 'register', if(v = 1, 'wipe', 'restore')) as from_cause",
            "if(v = 0, concat('wire:10.0.0.', b % 250, ':40000'), 'token:alice') as from_actor",
            "concat('w1-', hex(from_ms), '-', hex(b)) as from_op",
            "to_ms",
            "if(to_ms is null, null, struct(to_ms as ms, v as n)) as to_id",
            f"if({last}, null, if(v = {VERSIONS - 1}, 'epoch', 'wipe')) as to_cause",
            "if(to_ms is null, null, 'token:alice') as to_actor",
        )
    )


class Clock:
    """Seconds that went by, and seconds of processor that this process took."""

    def __init__(self) -> None:
        self._began, self._used = time.monotonic(), time.process_time()

    def print_step(self, what: str, rows: int) -> None:
        """Print the times since the last call, the number of rows, and the most memory so far."""
        began, used = self._began, self._used
        self._began, self._used = time.monotonic(), time.process_time()
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        times = f"{self._began - began:7.2f} s {self._used - used:7.2f} CPU-s"
        print(f"{what:44} {times} {rows:9} rows {peak_mb:6} MB", flush=True)


def measure(root: str) -> None:
    """Print the time of each query: the first time, then warm."""
    clock = Clock()
    reading = Reader(place(root)).reading("default")
    clock.print_step("open the warehouse", 0)
    long_ago, lately = BEGIN_MS + 60 * 24 * HOUR_MS, AS_OF_MS - 24 * HOUR_MS
    topics = sorted(reading.tables.topics_of(AS_OF_MS, AS_OF_MS, pc.field("bucket") == 0))[:3]
    clock.print_step("choose topics", len(topics))
    questions = {
        "route_at, a day ago": ("route", {"at_ms": lately}),
        "route_at, ten months ago": ("route", {"at_ms": long_ago}),
        "diff of a topic, a day": ("diff", {"from_ms": lately, "to_ms": lately + 24 * HOUR_MS}),
        "diff of a topic, a year": ("diff", {"from_ms": BEGIN_MS + YEAR_MS // 20, "to_ms": AS_OF_MS}),
        "permissions of a topic, a year": ("permissions", {}),
        "timeline of a topic, a year": ("timeline", {}),
    }
    for name, (question, arguments) in questions.items():
        for topic in topics:
            reply = ask(reading, question, arguments | {"topic": topic})
            clock.print_step(
                name, len(reply["changes"] if "changes" in reply else reply["route"]["queueDatas"])
            )
    for name, from_ms in (("lately", lately), ("ten months ago", long_ago)):
        for _ in range(2):
            reply = ask(reading, "diff", {"from_ms": from_ms, "to_ms": from_ms + HOUR_MS, "limit": 1000})
            clock.print_step(f"diff of all topics over an hour, {name}", len(reply["changes"]))
    for name, at_ms in (("a day ago", lately), ("ten months ago", long_ago)):
        clock.print_step(f"all routes, {name}", sum(1 for _ in routes_at(reading.tables, at_ms)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--buckets", type=int, default=ROUTE_BUCKETS)
    given = parser.parse_args()
    if given.what == "measure":
        measure(str(given.folder))
        return
    spark, started = spark_session("bench", SETTINGS), time.monotonic()
    make(spark, str(given.folder), given.topics, given.buckets)
    print(f"made in {time.monotonic() - started:.0f} s")
    spark.stop()


if __name__ == "__main__":
    main()
