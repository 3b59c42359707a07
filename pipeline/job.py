"""A run from end to end: land what the stream has, make tables and reports of it, serve them."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import files, formats, schemas
from pipeline.building import Source, Told, build
from pipeline.landing.kinds import EVENTS_LAND, HEARTBEATS_LAND, Landed
from pipeline.landing.landing import Landing
from pipeline.landing.progress import read_progress
from pipeline.landing.reading import read_events, read_heartbeats
from pipeline.options import Options
from pipeline.serving.page.render import html
from pipeline.serving.publish import publish
from pipeline.serving.results import BROKER_STATES, Results, Run, take
from pipeline.source.connection import Store
from pipeline.source.options import options_of
from pipeline.states.brokers import broker_states
from pipeline.states.slots import slot_states
from pipeline.warehouse import Snapshot, Warehouse

NAME = "redis-namesrv pipeline"
"""Of a Spark session for runs."""
LANDED = (EVENTS_LAND, HEARTBEATS_LAND)
WAKE_S = 1.0
NO_REPORT = "-"
log = logging.getLogger(__name__)


class _Ended(Exception):
    """Told to end."""


def run(spark: SparkSession, options: Options, told: Told, *, anew: bool = False) -> Snapshot:
    """Land, build, serve; `anew`: from all that was ever landed."""
    land(spark, options, told)
    return report(spark, options, told, anew=anew)


def land(spark: SparkSession, options: Options, told: Told) -> None:
    """Everything the streams have now."""
    for kind in LANDED:
        with closing(_landing(spark, options, kind)) as landing:
            told(f"landing {kind.table.name}")
            streams = landing.land_available().streams
        for stream, one in sorted(streams.items()):
            told(f"{one.entries:,} entries of {stream} have landed by now")


def stream(
    spark: SparkSession,
    options: Options,
    told: Told,
    stop: threading.Event,
    *,
    every_s: float,
    trigger_s: float,
) -> None:
    """Land entries as they come and report each `every_s`, until `stop` is set or the landing fails, which raises.

    A report under way breaks off at its next step: nobody has seen anything of it."""

    def told_unless_ended(text: str) -> None:
        if stop.is_set():
            raise _Ended
        told(text)

    with suppress(_Ended), ExitStack() as opened:
        landings = [opened.enter_context(closing(_landing(spark, options, kind))) for kind in LANDED]
        land = opened.enter_context(ThreadPoolExecutor(1, "landing")).submit(_land, landings, stop, trigger_s)
        opened.callback(_end, spark, land, stop)
        due_s = time.monotonic()
        while not stop.wait(WAKE_S):
            if land.done():
                land.result()
            if time.monotonic() >= due_s and landings[0].progress.batch:
                report(spark, options, told_unless_ended)
                due_s = time.monotonic() + every_s


def _land(landings: Sequence[Landing], stop: threading.Event, every_s: float) -> None:
    """Until then. What fails because it came to an end meanwhile has not failed."""
    try:
        while not stop.is_set():
            for landing in landings:
                landing.land_available()
            stop.wait(every_s)
    except Exception:
        if not stop.is_set():
            raise
        log.info("the landing broke off", exc_info=True)


def _end(spark: SparkSession, land: Future[None], stop: threading.Event) -> None:
    """Of the landing, in the middle of a batch too: nobody has seen anything of it."""
    stop.set()
    while wait([land], WAKE_S).not_done:
        spark.sparkContext.cancelAllJobs()


def report(spark: SparkSession, options: Options, told: Told, *, anew: bool = False) -> Snapshot:
    """Tables and reports of what has landed, and what is served of them."""
    started_s = time.monotonic()
    warehouse = formats.warehouse(spark, options)
    progress = read_progress(spark, f"{warehouse.root}/{schemas.EVENTS.name}")
    source = Source(
        read_events(spark, warehouse.root), read_heartbeats(spark, warehouse.root), progress.as_of_ms
    )
    snapshot = build(warehouse.begin(), source, options, told, anew=anew)
    _serve(warehouse, snapshot, options, told, lambda: int(1000 * (time.monotonic() - started_s)))
    return snapshot


def _landing(spark: SparkSession, options: Options, kind: Landed) -> Landing:
    return Landing(
        spark,
        options.warehouse,
        kind,
        {"url": options.url},
        options.namespaces,
        f"pipeline:{options.consumer}" if kind is EVENTS_LAND else None,
    )


def _serve(
    warehouse: Warehouse, snapshot: Snapshot, options: Options, told: Told, took_ms: Callable[[], int]
) -> None:
    if not options.serve and options.report == NO_REPORT:
        return
    told("what is served")
    found = take(_frames(warehouse, snapshot, options), snapshot.as_of_ms)
    progress = read_progress(warehouse.spark, f"{warehouse.root}/{schemas.EVENTS.name}")
    missing = _missing(warehouse.read(schemas.GAPS, snapshot))
    for one in progress.streams.values():
        counted = Run(
            run=str(snapshot.run),
            as_of_ms=snapshot.as_of_ms,
            took_ms=took_ms(),
            events=one.entries,
            holes=missing.get((one.namespace, "hole"), 0),
            phantoms=missing.get((one.namespace, "rollback"), 0),
            rejected=one.rejected,
        )
        results = found.get(one.namespace, Results(snapshot.as_of_ms, {}))
        if options.serve:
            _publish(options, one.namespace, counted, results)
        if options.report != NO_REPORT:
            path = f"{options.report or warehouse.root}/report-{one.namespace}.html"
            files.write_text_atomically(warehouse.spark, path, html(one.namespace, counted, results))
            told(f"{path} is written")


def _publish(options: Options, namespace: str, run: Run, results: Results) -> None:
    with Store(options_of({"url": options.url, "streams": EVENTS_LAND.stream(namespace)})) as store:
        store.attempt(lambda: publish(store.client, namespace, run, results))


def _frames(warehouse: Warehouse, snapshot: Snapshot, options: Options) -> dict[str, DataFrame]:
    tables = (*schemas.REPORTS, schemas.INCIDENTS)
    frames = {table.name: warehouse.read(table, snapshot).select(*table.schema.names) for table in tables}
    stays = warehouse.read(schemas.BROKER_SESSIONS, snapshot)
    slots = slot_states(stays, snapshot.as_of_ms, options.retire_after)
    return {**frames, BROKER_STATES: broker_states(slots)}


def _missing(gaps: DataFrame) -> dict[tuple[str, str], int]:
    """(namespace, type) -> how many entries."""
    counted = gaps.groupBy("namespace", "type").agg(F.sum(F.expr("to_seq - from_seq + 1")).alias("entries"))
    return {(row["namespace"], row["type"]): row["entries"] for row in counted.collect()}
