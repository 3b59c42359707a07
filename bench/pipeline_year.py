"""Time and memory of tables and reports of a made-up year, with no store: the entries go straight into the landing.

`python -m bench.pipeline_year make FOLDER [--brokers N --topics N --weeks N]` writes the entries as a read of the
stream gives them, `land FOLDER` makes the landing of all but the last day and hour, `build FOLDER` tables and reports,
and prints of each step the time, the processor's time and the memory that Spark's Java process took. `grow FOLDER`
lands that day, then that hour, then nothing, and prints the same of the run behind each. Without options the year is
that of 1,000 brokers and 100,000 topics: 1.5 million entries about 72 million pairs of a topic and a broker.
"""

import argparse
import shutil
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from bench.spark_clock import Clock
from mqpipeline import schemas
from mqpipeline.building import Source, build
from mqpipeline.lake.log import created, opened
from mqpipeline.lake.place import place
from mqpipeline.lake.writing import plan, with_partitions, written
from mqpipeline.landing import reading
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import WRITER, Progress, progress_of
from mqpipeline.options import Options
from mqpipeline.reports import catalogue
from mqpipeline.scale import Scale, entries
from mqpipeline.session import spark_session
from mqpipeline.warehouse import Warehouse
from pyspark_redis_stream.batches import Batches
from pyspark_redis_stream.replies import Page

RAW, SCALE = "raw", "scale.json"
RAW_SCHEMA = pa.schema(
    {"stream": pa.utf8(), "id_ms": pa.int64(), "id_n": pa.int64(), "fields": pa.map_(pa.utf8(), pa.utf8())}
)
FILE_ENTRIES = 20_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


def make(root: str, scale: Scale) -> None:
    """Write the entries, and what they were made of."""
    folder, made = Path(root, RAW), entries(scale)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    while some := list(islice(made, FILE_ENTRIES)):
        rows = [{**entry._asdict(), "stream": scale.stream} for entry in some]
        pq.write_table(pa.Table.from_pylist(rows, RAW_SCHEMA), folder / f"{some[0].id_ms}.parquet")
    Path(root, SCALE).write_bytes(msgspec.json.encode(scale._asdict()))


def scale_of(root: str) -> Scale:
    """Return what the entries were made of."""
    return Scale(**msgspec.json.decode(Path(root, SCALE).read_bytes()))


def end_of(scale: Scale) -> int:
    """Return when the history ends (ms)."""
    return scale.start_ms + scale.weeks * 7 * DAY_MS


def land(spark: SparkSession, root: str, from_ms: int, to_ms: int) -> None:
    """Land the entries of [from_ms, to_ms) in one batch, and know until then that there are no others."""
    scale = scale_of(root)
    raw = spark.read.parquet(f"{root}/{RAW}").where(f"id_ms >= {from_ms} and id_ms < {to_ms}")
    events = place(root).under(schemas.EVENTS.name)
    log = created(events, schemas.EVENTS)
    batch = progress_of(log, EVENTS_LAND).batch + 1
    columns = cast(StructType, StructType.fromDDL(EVENTS_LAND.columns))
    rows = raw.mapInArrow(
        partial(_rows, Batches(columns), schemas.EVENTS.schema, scale.namespace, batch), schemas.EVENTS.schema
    )
    (files,) = written([plan(with_partitions(rows, schemas.EVENTS), schemas.EVENTS, events)])
    log.commit(WRITER, batch, files, {})
    newest = progress_of(log, EVENTS_LAND).streams[scale.stream]
    as_of = msgspec.structs.replace(newest, as_of_ms=to_ms)
    log.commit(WRITER, batch + 1, [], Progress(batch + 1, {scale.stream: as_of}).said())


def _rows(
    columns: Batches, schema: StructType, namespace: str, number: int, raw: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Entries as maps -> rows of EVENTS of the landing's batch of that number."""
    made = to_arrow_schema(schema, timezone="UTC")
    for batch in raw:
        ids = pc.binary_join_element_wise(batch["id_ms"].cast(pa.utf8()), batch["id_n"].cast(pa.utf8()), "-")
        fields = batch["fields"]
        counts = np.diff(fields.offsets.to_numpy())
        page = Page(
            ids.cast(pa.binary()), counts, fields.keys.cast(pa.binary()), fields.items.cast(pa.binary())
        )
        for read in columns.of(batch["stream"][0].as_py(), page):
            yield EVENTS_LAND.rows(read, namespace, number, made)


def grow(spark: SparkSession, root: str, options: Options) -> None:
    """Print what each step of a run takes behind a further day, behind a further hour, and when nothing has come."""
    end_ms = end_of(scale_of(root))
    land(spark, root, end_ms - DAY_MS - HOUR_MS, end_ms - HOUR_MS)
    run(spark, root, options, "a day more")
    land(spark, root, end_ms - HOUR_MS, end_ms)
    run(spark, root, options, "an hour more")
    run(spark, root, options, "nothing more")


def measure(spark: SparkSession, root: str, options: Options) -> None:
    """Print what each step of a full run takes, and how many rows the tables have then."""
    for table in (schemas.RUNS, *schemas.TABLES[1:], *catalogue.TABLES):
        shutil.rmtree(f"{root}/{table.name}", ignore_errors=True)
    run(spark, root, options, "a year")
    warehouse = Warehouse(spark, root)
    for table in (*schemas.TABLES[1:], *catalogue.TABLES):
        print(f"{table.name:24} {warehouse.read(table).count():12,} rows", flush=True)


def run(spark: SparkSession, root: str, options: Options, what: str) -> None:
    """Print what each step of a run takes."""
    warehouse = Warehouse(spark, root)
    progress = progress_of(opened(place(root).under(schemas.EVENTS.name), schemas.EVENTS), EVENTS_LAND)
    source = Source(reading.events(spark, root), reading.heartbeats(spark, root), progress.as_of_ms)
    whole, steps = Clock(spark), Steps(Clock(spark))
    build(warehouse.begin(), source, options, steps.begin)
    steps.begin("")
    whole.print_step(what)


class Steps:
    """Prints each step of a run when the next one begins."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step = "begin"

    def begin(self, step: str) -> None:
        """Print the step before and begin this one."""
        self._clock.print_step(self._step)
        self._step = step


def main() -> None:
    whole = Scale()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "land", "build", "grow"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--brokers", type=int, default=whole.brokers)
    parser.add_argument("--topics", type=int, default=whole.topics)
    parser.add_argument("--weeks", type=int, default=whole.weeks)
    parser.add_argument("--memory", default="8g", help="of the Java process's heap")
    parser.add_argument("--partitions", type=int, default=32, help="of a shuffle")
    given = parser.parse_args()
    root = str(given.folder)
    given.folder.mkdir(parents=True, exist_ok=True)
    options = Options(warehouse=root, master="local[2]", memory=given.memory)
    shuffled = {
        "spark.sql.shuffle.partitions": str(given.partitions),
        "spark.local.dir": f"{root}/spark",
    }
    spark = spark_session("bench", {**SETTINGS, **shuffled, **options.spark})
    started = time.monotonic()
    match given.what:
        case "make":
            scale = Scale(brokers=given.brokers, topics=given.topics, weeks=given.weeks)
            make(root, scale)
        case "land":
            shutil.rmtree(f"{root}/{schemas.EVENTS.name}", ignore_errors=True)
            scale = scale_of(root)
            land(spark, root, scale.start_ms, end_of(scale) - DAY_MS - HOUR_MS)
        case "build":
            measure(spark, root, options)
        case _:
            grow(spark, root, options)
    print(f"{given.what}: {time.monotonic() - started:.0f} s", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
