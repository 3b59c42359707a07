"""A run: land the new events, compute tables and reports, publish them."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from math import inf
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from mqpipeline import building, lean, schemas
from mqpipeline.building import Progress, Source, build
from mqpipeline.lake.log import OtherWriter
from mqpipeline.lake.place import Place, place
from mqpipeline.landing import progress as landing_progress
from mqpipeline.landing import reading
from mqpipeline.landing.kinds import EVENTS_LAND, HEARTBEATS_LAND, LANDED, Landed
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.lease import Leases
from mqpipeline.options import ALL, DAY_MS, Options
from mqpipeline.reports.catalogue import CATALOGUE
from mqpipeline.serving.page.render import html
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import BROKER_STATES, Results, Run, take
from mqpipeline.states.brokers import broker_states
from mqpipeline.states.slots import known_until, slot_states
from mqpipeline.tables.health import Entries
from mqpipeline.times import format_time
from mqpipeline.warehouse import Snapshot, Warehouse
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import options_of

NAME = "redis-namesrv pipeline"
"""The name of a Spark session for runs."""
STEPS = len(LANDED) + building.STEPS + 1
"""Steps of a run over a short history."""
WAKE_S = 1.0
SAY_EVERY_S = 60.0
"""From one line of what has landed to the next."""
LEASE_TIMEOUT_S = "3"
"""A store that stands still holds up the end by no more."""
NO_REPORT = "-"
log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What a run has left, and the namespaces that are named and have no entries in the store now."""

    snapshot: Snapshot
    missing: tuple[str, ...]


class _Ended(Exception):
    """The stream was asked to end."""


@contextmanager
def leased(options: Options) -> Iterator[Leases]:
    """The leases of the namespaces that are named, to land them. Raises OtherWriter while another process does."""
    source = options_of(
        {"url": options.url, "pattern": EVENTS_LAND.stream(ALL), "timeoutSeconds": LEASE_TIMEOUT_S}
    )
    with closing(Leases(Store(source), f"pipeline:{options.consumer}")) as leases:
        leases.require(name for name in options.namespaces if name != ALL)
        yield leases


def run(
    spark: SparkSession, options: Options, progress: Progress, leases: Leases, *, full: bool = False
) -> Outcome:
    """Land, compute, publish; `full`: from all landed events."""
    land(spark, options, progress, leases)
    return report(spark, options, progress, full=full)


def land(spark: SparkSession, options: Options, progress: Progress, leases: Leases) -> None:
    """Land all entries that the streams have now. Raises OtherWriter while another process lands."""
    for kind in LANDED:
        with closing(_landing(spark, options, kind)) as landing:
            progress(f"landing {kind.table.name}")
            leases.require(landing.namespaces())
            streams = landing.land_available().streams
        for stream, position in sorted(streams.items()):
            if position.entries:
                log.info("%d entries of %s have landed by now", position.entries, stream)


def stream(
    spark: SparkSession,
    options: Options,
    progress: Progress,
    leases: Leases,
    stop: threading.Event,
    *,
    every_s: float,
    trigger_s: float,
) -> None:
    """Land new entries and report every `every_s`, until `stop` is set or the landing fails, which raises.

    A running report stops at its next step; no reader has seen its tables. One that another run was quicker than is
    made again when the next one is due."""
    with suppress(_Ended), ExitStack() as opened:
        landings = [opened.enter_context(closing(_landing(spark, options, kind))) for kind in LANDED]
        threads = opened.enter_context(ThreadPoolExecutor(1, "landing"))
        looked = threading.Event()
        under_way = threads.submit(_land, landings, leases, looked, stop, trigger_s)

        def progress_unless_ended(text: str) -> None:
            if stop.is_set():
                raise _Ended
            if under_way.done():
                under_way.result()
            progress(text)

        opened.callback(_end, spark, under_way, stop)
        due_s = time.monotonic()
        while not stop.wait(WAKE_S):
            if under_way.done():
                under_way.result()
            if looked.is_set() and time.monotonic() >= due_s and landings[0].progress.batch:
                try:
                    report(spark, options, progress_unless_ended)
                except OtherWriter as other:
                    if under_way.done():
                        under_way.result()  # the landing itself was refused
                    log.warning("%s; the next report is in %g s", other, every_s)
                due_s = time.monotonic() + every_s


def _land(
    landings: Sequence[Landing],
    leases: Leases,
    looked: threading.Event,
    stop: threading.Event,
    every_s: float,
) -> None:
    """Land until `stop` is set; a failure after that is logged and ignored. Sets `looked` after each look."""
    said: Mapping[str, int] = {}
    due_s = time.monotonic()
    try:
        while not stop.is_set():
            for landing in landings:
                leases.require(landing.namespaces())
                landing.land_available()
            looked.set()
            if time.monotonic() >= due_s:
                said, due_s = _say_landed(landings, said), time.monotonic() + SAY_EVERY_S
            stop.wait(every_s)
    except Exception:
        if not stop.is_set():
            raise
        log.info("the landing stopped in a batch; the next start lands it")
        log.debug("how it stopped", exc_info=True)


def _say_landed(landings: Iterable[Landing], said: Mapping[str, int]) -> Mapping[str, int]:
    """Log the entries of the streams that have more than was `said`; return how many each has."""
    streams = chain.from_iterable(landing.progress.streams.items() for landing in landings)
    entries = {stream: position.entries for stream, position in streams}
    for stream in sorted(entries):
        if entries[stream] > said.get(stream, 0):
            log.info("%d entries of %s have landed by now", entries[stream], stream)
    return entries


def _end(spark: SparkSession, land: Future[None], stop: threading.Event) -> None:
    """End the landing, even within a batch, which no reader has seen."""
    stop.set()
    while wait([land], WAKE_S).not_done:
        spark.sparkContext.cancelAllJobs()


def report(spark: SparkSession, options: Options, progress: Progress, *, full: bool = False) -> Outcome:
    """Compute tables and reports of the landed events, and publish them."""
    started_s = time.monotonic()
    warehouse = Warehouse(spark, options.warehouse)
    landed, heartbeats = (_looked(spark, options, kind) for kind in (EVENTS_LAND, HEARTBEATS_LAND))
    _warn(landed)
    source = Source(
        reading.events(spark, warehouse.root),
        reading.heartbeats(spark, warehouse.root),
        landed.as_of_ms,
        _latest(warehouse.snapshot.as_of, landed.as_of),
        {stream.namespace: Entries(stream.entries, stream.rejected) for stream in landed.known.values()},
        heartbeats.as_of_ms if heartbeats.present else inf,
    )
    with lean.planning_for(spark, sum(stream.entries for stream in landed.streams.values())):
        snapshot = build(warehouse.begin(), source, options, progress, full=full)
        _serve(
            warehouse, snapshot, landed, options, progress, lambda: int(1000 * (time.monotonic() - started_s))
        )
    there = {landed.streams[name].namespace for name in landed.present if landed.streams[name].entries}
    return Outcome(snapshot, tuple(name for name in options.namespaces if name not in {ALL, *there}))


def _looked(spark: SparkSession, options: Options, kind: Landed) -> landing_progress.Progress:
    """Return how far a table has landed, and until when that is all there is."""
    with closing(_landing(spark, options, kind, acknowledging=False)) as landing:
        return landing.advance()


def _warn(landed: landing_progress.Progress) -> None:
    """Say of which streams reports do not have all."""
    for stream, position in landed.absent.items():
        if not position.entries:
            continue  # it was named once, and never had any
        log.warning(
            "%s is gone or no longer named: known until %s, nothing newer is reported; name it again, or leave it",
            stream,
            format_time(position.as_of_ms),
        )
    for stream, position in landed.known.items():
        if not position.entries:
            log.warning(
                "%s has no entry: no broker has registered there yet, or the namespace is another one; name it "
                "with MQNS_PIPELINE_NAMESPACES or --namespace",
                stream,
            )
        if position.at.ms > position.as_of_ms + DAY_MS:
            log.warning(
                "the newest entry of %s, %s, is ahead of the store's clock by more than a day: reports have it once "
                "that time has come; set the clock right, then delete the stream: what has landed stays",
                stream,
                position.id,
            )


def _latest(before: Mapping[str, int], landed: Mapping[str, int]) -> dict[str, int]:
    """Return until when each namespace is known: a look that finds nothing is in no log, but in the run's row."""
    return {namespace: max(at_ms, before.get(namespace, 0)) for namespace, at_ms in landed.items()}


def _landing(spark: SparkSession, options: Options, kind: Landed, *, acknowledging: bool = True) -> Landing:
    return Landing(
        spark,
        options.warehouse,
        kind,
        {"url": options.url},
        options.namespaces,
        f"pipeline:{options.consumer}" if kind is EVENTS_LAND and acknowledging else None,
    )


def _serve(
    warehouse: Warehouse,
    snapshot: Snapshot,
    landed: landing_progress.Progress,
    options: Options,
    progress: Progress,
    took_ms: Callable[[], int],
) -> None:
    if not options.serve and options.report == NO_REPORT:
        return
    progress("publishing")
    taken = take(_frames(warehouse, snapshot, options), snapshot.as_of_ms)
    healths = {row["namespace"]: row for row in warehouse.rows(schemas.HEALTH, snapshot)}
    for position in (landed.streams[name] for name in sorted(landed.present)):
        if not position.entries:
            continue
        health = healths.get(position.namespace, {})
        seen = {name: health[name] for name in Run.__struct_fields__ if health.get(name) is not None}
        counted = Run(
            **seen
            | {
                "run": str(snapshot.run),
                "as_of_ms": snapshot.as_of_ms,
                "took_ms": took_ms(),
                "events": position.entries,
                "holes": health.get("missing", 0),
                "rejected": position.rejected,
            }
        )
        results = taken.get(position.namespace, Results(snapshot.as_of_ms, {}))
        if options.report != NO_REPORT:
            _write_page(place(options.report or warehouse.root), position.namespace, counted, results)
        if options.serve:
            _publish(options, position.namespace, counted, results)


def _write_page(folder: Place, namespace: str, run: Run, results: Results) -> None:
    """Write the page of a namespace; one that cannot be written keeps no other from its reports."""
    name = f"report-{namespace.replace('/', '%2F')}.html"
    try:
        folder.replace(name, html(namespace, run, results).encode())
    except OSError as error:
        log.warning("%s is not written: %s; see GET /v1/reports", folder.under(name).name, error.strerror)
        return
    log.info("%s is written", folder.under(name).name)


def _publish(options: Options, namespace: str, run: Run, results: Results) -> None:
    with Store(options_of({"url": options.url, "streams": EVENTS_LAND.stream(namespace)})) as store:
        store.attempt(lambda: publish(store.client, namespace, run, results))


def _frames(warehouse: Warehouse, snapshot: Snapshot, options: Options) -> dict[str, DataFrame]:
    tables = [report.table for report in CATALOGUE]
    frames = {table.name: warehouse.read(table, snapshot).select(*table.schema.names) for table in tables}
    stays = known_until(warehouse.read(schemas.BROKER_SESSIONS, snapshot), snapshot.earlier)
    slots = slot_states(stays, snapshot.as_of_ms, options.retire_after)
    return {**frames, BROKER_STATES: broker_states(slots)}
