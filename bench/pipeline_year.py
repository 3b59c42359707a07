"""Time and memory of tables and reports of a made-up year, with no store: the entries go straight into the landing.

`python -m bench.pipeline_year make FOLDER [--brokers N --topics N --weeks N]` writes the entries as a read of the
stream gives them, `land FOLDER` makes the landing of them, `build FOLDER` tables and reports, and prints of each step
the time, the processor's time and the memory that Spark's Java process took. Without options the year is that of 1,000
brokers and 100,000 topics: 1.5 million entries about 72 million pairs of a topic and a broker.
"""

import argparse
import shutil
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from bench.servers import Server
from mqpipeline import schemas
from mqpipeline.building import Source, build
from mqpipeline.lake.log import created, opened
from mqpipeline.lake.place import place
from mqpipeline.lake.writing import with_partitions, write
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import WRITER, Progress, progress_of
from mqpipeline.landing.reading import read_events, read_heartbeats
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
BATCH = 1
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


def land(spark: SparkSession, root: str) -> None:
    """Make the landing of the entries, as if one batch had brought them all an hour after the last."""
    scale = Scale(**msgspec.json.decode(Path(root, SCALE).read_bytes()))
    raw = spark.read.parquet(f"{root}/{RAW}")
    events = place(root).under(schemas.EVENTS.name)
    shutil.rmtree(f"{root}/{schemas.EVENTS.name}", ignore_errors=True)
    log = created(events, schemas.EVENTS)
    columns = cast(StructType, StructType.fromDDL(EVENTS_LAND.columns))
    rows = raw.mapInArrow(
        partial(_rows, Batches(columns), schemas.EVENTS.schema, scale.namespace), schemas.EVENTS.schema
    )
    log.commit(
        WRITER, BATCH, write(with_partitions(rows, schemas.EVENTS), schemas.EVENTS, events, placed=False), {}
    )
    newest = progress_of(log, EVENTS_LAND).streams[scale.stream]
    as_of = msgspec.structs.replace(newest, as_of_ms=newest.as_of_ms + HOUR_MS)
    log.commit(WRITER, BATCH + 1, [], Progress(BATCH + 1, {scale.stream: as_of}).said())


def _rows(
    columns: Batches, schema: StructType, namespace: str, raw: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Entries as maps -> rows of EVENTS."""
    made = to_arrow_schema(schema, timezone="UTC")
    for batch in raw:
        ids = pc.binary_join_element_wise(batch["id_ms"].cast(pa.utf8()), batch["id_n"].cast(pa.utf8()), "-")
        fields = batch["fields"]
        counts = np.diff(fields.offsets.to_numpy())
        page = Page(
            ids.cast(pa.binary()), counts, fields.keys.cast(pa.binary()), fields.items.cast(pa.binary())
        )
        for read in columns.of(batch["stream"][0].as_py(), page):
            yield EVENTS_LAND.rows(read, namespace, BATCH, made)


def measure(spark: SparkSession, root: str, options: Options) -> None:
    """Print what each step of a full run takes, and how many rows the tables have then."""
    for table in (schemas.RUNS, *schemas.TABLES[1:], *catalogue.TABLES):
        shutil.rmtree(f"{root}/{table.name}", ignore_errors=True)
    warehouse = Warehouse(spark, root)
    progress = progress_of(opened(place(root).under(schemas.EVENTS.name), schemas.EVENTS), EVENTS_LAND)
    source = Source(read_events(spark, root), read_heartbeats(spark, root), progress.as_of_ms)
    began, steps = time.monotonic(), Steps(Clock(spark))
    build(warehouse.begin(), source, options, steps.begin)
    steps.begin("")
    print(f"{time.monotonic() - began:.0f} s in all, peak of memory {Clock(spark).peak_mb} MB", flush=True)
    for table in (*schemas.TABLES[1:], *catalogue.TABLES):
        print(f"{table.name:24} {warehouse.read(table).count():12,} rows", flush=True)


class Clock:
    """Seconds that went by, and seconds of processor that Spark's Java process and its Python workers took."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._process = Path(f"/proc/{gateway.proc.pid}")
        self._all = Server("spark", 0, gateway.proc.pid)
        self._began, self._used = self._now()

    @property
    def peak_mb(self) -> int:
        """Return the largest memory (MB) that the Java process has held."""
        words = self._process.joinpath("status").read_text().partition("VmHWM:")[2].split()
        return int(words[0]) >> 10

    def print_step(self, what: str) -> None:
        """Print the times since the last call, and the most memory so far."""
        began, before = self._began, self._used
        self._began, self._used = self._now()
        used = sum(seconds - before.get(pid, 0) for pid, seconds in self._used.items())
        times = f"{self._began - began:7.2f} s {used:7.2f} CPU-s"
        print(f"{what:44} {times} {self.peak_mb:9} MB", flush=True)

    def _now(self) -> tuple[float, dict[int, float]]:
        return time.monotonic(), self._all.cpu_seconds_by_process()


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
    parser.add_argument("what", choices=("make", "land", "build"))
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
            land(spark, root)
        case _:
            measure(spark, root, options)
    print(f"{given.what}: {time.monotonic() - started:.0f} s", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
