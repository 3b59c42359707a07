"""What a report's first read of events takes, after so many batches have landed.

`python -m bench.pipeline_batches [--batches N]` commits batches of 20 entries one after the other, each a file of
its own, with the compaction and the checkpoints of the log that a landing makes; then prints the time of opening the
log, and of opening it and counting all entries in Spark.
"""

import argparse
import tempfile
import time

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from bench.spark_clock import Clock
from mqpipeline.lake.files import NewFile
from mqpipeline.lake.log import created
from mqpipeline.lake.maintenance import care
from mqpipeline.lake.place import place
from mqpipeline.landing import reading
from mqpipeline.landing.landing import COMPACT_EVERY, VACUUM_EVERY
from mqpipeline.landing.progress import WRITER, Progress, StreamProgress
from mqpipeline.schemas import EVENTS
from mqpipeline.session import spark_session

OF_A_BATCH = 20
EVERY_MS = 5_000
BEGIN_MS = 1_767_225_600_000  # 2026-01-01
NAMESPACE = "bench"


def rows_of(batch: int, schema: pa.Schema) -> pa.RecordBatch:
    """Entries of one batch, numbered from 1."""
    first = (batch - 1) * OF_A_BATCH
    named = {
        "namespace": NAMESPACE,
        "batch": batch,
        "kind": "kv_changed",
        "cause": "put",
        "v": 1,
        "inc": BEGIN_MS,
    }
    placed = [
        {**named, "seq": first + i + 1, "id_ms": BEGIN_MS + batch * EVERY_MS, "id_n": i}
        for i in range(OF_A_BATCH)
    ]
    return pa.RecordBatch.from_pylist(placed, schema=schema)


def land(root: str, batches: int) -> None:
    """Commit them as a landing does."""
    schema = to_arrow_schema(EVENTS.schema, timezone="UTC")
    events = place(root).under(EVENTS.name)
    log = created(events, EVENTS)
    for batch in range(1, batches + 1):
        at_ms = BEGIN_MS + batch * EVERY_MS
        day = time.strftime("%Y-%m-%d", time.gmtime(at_ms // 1000))
        file = NewFile(schema, EVENTS.bounded, {"day": day})
        file.add(rows_of(batch, schema))
        entries = batch * OF_A_BATCH
        known = StreamProgress(
            NAMESPACE, f"{at_ms}-{OF_A_BATCH - 1}", BEGIN_MS, entries, as_of_ms=at_ms, entries=entries
        )
        log.commit(WRITER, batch, [file.written(events)], Progress(batch, {NAMESPACE: known}).said())
        care(log, batch, compact_every=COMPACT_EVERY, vacuum_every=VACUUM_EVERY)


def read(spark: SparkSession, root: str, clock: Clock, what: str) -> None:
    """Print the times of opening the log, and of counting all entries."""
    began = time.monotonic()
    events = reading.events(spark, root)
    opened_s = time.monotonic() - began
    count = events.rows().count()
    clock.print_step(f"{what}: {count} entries, log open after {opened_s:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pipeline-batches-") as folder:
        spark = spark_session("bench")
        spark.range(1).count()
        began = time.monotonic()
        land(folder, given.batches)
        print(f"{given.batches} batches in {time.monotonic() - began:.0f} s", flush=True)
        clock = Clock(spark)
        for what in ("first", "again"):
            read(spark, folder, clock, what)
        spark.stop()


if __name__ == "__main__":
    main()
