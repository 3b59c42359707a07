"""From the landing to tables and reports: what a run computes again, and what it takes from the run before.

A full run reads all landed events. An incremental run reads the events since the previous run and the open rows, and
for reports the events of open windows, from files that the log names; it requires continuous history: no hole, repeat,
new incarnation, or event before the end of closed windows. Both give the same rows.

Reports of long history are computed some months at a time, which bounds the memory of a step.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline import schemas
from mqpipeline.clean import clean, counts, gaps, runs
from mqpipeline.landing.reading import EVER, NEVER, Since
from mqpipeline.options import DAY_MS, Options
from mqpipeline.partitions import enough_for
from mqpipeline.reports.catalogue import CATALOGUE
from mqpipeline.reports.inputs import Inputs, make
from mqpipeline.schemas import Table
from mqpipeline.states.brokers import broker_states, writable_states
from mqpipeline.states.slots import known_until, slot_states
from mqpipeline.tables import check, health, increments
from mqpipeline.tables.broker_versions import broker_versions
from mqpipeline.tables.route_versions import route_versions
from mqpipeline.tables.sessions import sessions
from mqpipeline.warehouse import Folded, Run, Snapshot, earlier
from mqpipeline.windows import Window, month_of, months, span, window_batches, windows

VERSIONS_AT_ONCE = 40_000_000
"""Route versions that reports are made of at a time: more would take more memory, fewer more time."""
VERSIONS_OF_A_PARTITION = 500_000
"""All of them are in the memory of one Python process together, which takes some 300 MB then."""
FADED_MS = DAY_MS
"""What happened so long before a window or after it does not weigh in it: a flap score halves every 15 minutes, and no
operation takes a day."""

STEPS = 5 + len(CATALOGUE)
"""Steps of a run over a short history."""
Progress = Callable[[str], None]
"""Called with each step before it."""
log = logging.getLogger(__name__)


class LandedRows(Protocol):
    """Those of a landed table: `mqpipeline.landing.reading.LandedTable`."""

    def rows(self, since: Since = EVER) -> DataFrame:
        """Return all of these; others may be among them."""

    def has_rows(self, since: Since = EVER) -> bool:
        """Return False only if there is none of these."""


class Source(NamedTuple):
    """What a run works on: EVENTS and HEARTBEATS as landed, and until when all is known: of all namespaces that are
    present, and of each (`as_of`); of one that is gone it is earlier. `landed` counts entries of each namespace."""

    events: LandedRows
    heartbeats: LandedRows
    as_of_ms: int
    as_of: Mapping[str, int] = MappingProxyType({})
    landed: Mapping[str, health.Entries] = MappingProxyType({})


def build(run: Run, source: Source, options: Options, progress: Progress, *, full: bool = False) -> Snapshot:
    """Write the run's tables and reports and commit it; `progress` is called with each step before it."""
    covered = _nothing_new(run, source, progress) if not full else None
    if covered is None:
        covered = _make_tables(run, source, progress, full=full)
    final_ms = month_of(source.as_of_ms - 2 * options.largest_timeout)
    of = windows(source.as_of_ms, covered.since_ms)
    whole = covered.whole
    if whole is None:  # the windows begin before what is new
        from_ms = span(of)[0] - FADED_MS
        whole = _planned_apart(runs(source.events.rows(Since(from_ms)).where(f"id_ms >= {from_ms}")))
    _write_reports(run, source, whole, options, progress, of, final_ms, full=covered.whole is not None)
    return run.commit(as_of_ms=source.as_of_ms, as_of=source.as_of, final_ms=final_ms, folded=covered.folded)


class _Covered(NamedTuple):
    """How far the tables cover each namespace, from when on windows are open, and the runs of all events, None where
    only a part of these was read."""

    folded: Mapping[str, Folded]
    since_ms: int
    whole: DataFrame | None


def _nothing_new(run: Run, source: Source, progress: Progress) -> _Covered | None:
    """Leave the tables as they are if the log has no event that they do not have; None if it has."""
    if not run.base.folded or source.events.has_rows(_since_last(run)):
        return None
    progress("nothing has come since the last run")
    _write_seen(run, source, health.Seen((), None, ()), run.warehouse.rows(schemas.HEALTH, run.base))
    return _Covered(run.base.folded, run.base.final_ms, None)


def _make_tables(run: Run, source: Source, progress: Progress, *, full: bool) -> _Covered:
    """Write the tables of all events, or of those since the last run if these go on where it ended."""
    base = run.base
    known = _positions(run.warehouse.spark, base.folded)
    events = source.events.rows() if full else source.events.rows(_since_last(run))
    if not full and not (base.folded and _continues(events, known, base.final_ms)):
        full, events = True, source.events.rows()
    progress("reading all that was landed" if full else "reading what came since the last run")
    read = events if full else increments.fresh(events, known)
    whole = _planned_apart(runs(read))
    entries = clean(read, whole)
    _write_tables(run, read, entries, progress, full=full)
    if full:
        run.write(schemas.GAPS, gaps(events, whole), full=True)
    positions = _planned_apart(
        increments.positions(events, entries, run.read(schemas.GAPS))
        if full
        else increments.moved(events, entries, known)
    )
    _write_health(run, source, read, whole, entries, positions, progress, full=full)
    folded = {
        row["namespace"]: Folded(row["inc"], row["seq"], row["batch"], row["recorded"])
        for row in positions.collect()
    }
    if full:
        return _Covered(folded, _first_ms(events, source.as_of_ms), whole)
    return _Covered(folded, base.final_ms, None)


def _planned_apart(few: DataFrame) -> DataFrame:
    """Return the same few rows without their plan, so that what is computed from them is planned much sooner."""
    return few.sparkSession.createDataFrame(few.toArrow())


def _continues(events: DataFrame, known: DataFrame, final_ms: int) -> bool:
    """Return whether what was landed since follows on what the tables have, and changes no closed window."""
    late = increments.fresh(events, known).where(f"least(id_ms, effective_ms) < {final_ms}")
    return increments.discontinuous(events, known).unionByName(late.select("namespace")).isEmpty()


def _since_last(run: Run) -> Since:
    """Return which events the tables may lack: those of later batches, and those of the time since the last run, for
    after the loss of a log entry other events may have landed under the number of a batch that was read."""
    health_before = run.warehouse.rows(schemas.HEALTH, run.base)
    if not health_before or any(row["waiting"] for row in health_before):
        return EVER
    last_read = max((position.batch for position in run.base.folded.values()), default=0)
    return Since(run.base.as_of_ms, last_read)


def _positions(spark: SparkSession, folded: Mapping[str, Folded]) -> DataFrame:
    rows = [
        (name, position.inc, position.seq, position.batch, position.recorded)
        for name, position in folded.items()
    ]
    return spark.createDataFrame(rows, increments.POSITIONS)


def _first_ms(events: DataFrame, as_of_ms: int) -> int:
    """Return when history begins, of all events."""
    first = events.agg(F.min("id_ms")).collect()[0][0]
    return as_of_ms if first is None else int(first)


def _write_tables(run: Run, read: DataFrame, entries: DataFrame, progress: Progress, *, full: bool) -> None:
    """Write the tables of the events read and of the clean entries among them."""

    def carried(table: Table) -> DataFrame | None:
        return None if full else run.warehouse.read_open(table, run.base)

    members = entries.where("rows is null").persist()  # rows are most of the bytes
    try:
        progress("broker sessions")
        rows = sessions(members, carried(schemas.BROKER_SESSIONS))
        run.write(schemas.BROKER_SESSIONS, rows, open="open", full=full)
        progress("broker versions")
        rows = broker_versions(members, carried(schemas.BROKER_VERSIONS))
        run.write(schemas.BROKER_VERSIONS, rows, open="to_ms is null", full=full)
    finally:
        members.unpersist()
    progress("route versions")
    open_before = carried(schemas.ROUTE_VERSIONS)
    many = _pairs(read) + (open_before.count() if open_before is not None else 0)
    with enough_for(read.sparkSession, many, VERSIONS_OF_A_PARTITION):
        versions = route_versions(entries, open_before, carried(schemas.BROKER_VERSIONS))
        run.write_arrow(schemas.ROUTE_VERSIONS, versions, open_without="to_ms", full=full)


def _write_health(
    run: Run,
    source: Source,
    read: DataFrame,
    whole: DataFrame,
    entries: DataFrame,
    positions: DataFrame,
    progress: Progress,
    *,
    full: bool,
) -> None:
    """Write HEALTH, once all other tables are written: what the run has read of the events, and the runs and the clean
    entries of that."""
    progress("what is missing, and whether checkpoints agree")
    before = [] if full else run.warehouse.rows(schemas.HEALTH, run.base)
    if not (full or before):  # of a run that did not count yet
        read = source.events.rows()
        whole = _planned_apart(runs(read))
    seen = health.Seen(
        _rows(counts(read, whole, positions)),
        None if before else _rows(health.missing(run.read(schemas.GAPS))),
        _checked(run, entries, full=full),
    )
    _write_seen(run, source, seen, before)


def _write_seen(run: Run, source: Source, seen: health.Seen, before: Iterable[health.Row]) -> None:
    """Write HEALTH of what this run has seen, and what was known `before`."""
    rows = health.health(seen, before, source.landed, source.as_of, source.as_of_ms)
    log_differences(rows)
    made = run.warehouse.spark.createDataFrame(rows, schemas.HEALTH.schema)
    run.write(schemas.HEALTH, made, open="true", full=True)


def log_differences(rows: Iterable[health.Row]) -> None:
    """Warn of rows of HEALTH whose checkpoint differs from the tables though it must not."""
    for row in filter(health.is_wrong, rows):
        log.warning(
            "checkpoint round %s of %s differs from the tables: %d members, %d topics on brokers; compute the tables "
            "again with --full; if they differ then, it is a defect: report it",
            row["round"],
            row["namespace"],
            row["members_differing"],
            row["pairs_differing"],
        )


def _checked(run: Run, entries: DataFrame, *, full: bool) -> list[health.Row]:
    """Compare the tables with the newest whole checkpoint round of each namespace among the clean entries."""
    rounds = _planned_apart(check.newest(check.rounds_of(entries, recorded=not full)))
    times = [(row["round_begin"]["ms"], row["round_end"]["ms"]) for row in rounds.collect()]
    if not times:
        return []
    begin_ms, end_ms = min(begin for begin, _ in times), max(end for _, end in times)
    routes = run.read(schemas.ROUTE_VERSIONS).where(_meets(begin_ms, end_ms))
    return _rows(check.checks(entries, run.read(schemas.BROKER_SESSIONS), routes, rounds))


def _rows(frame: DataFrame) -> list[health.Row]:
    return [row.asDict() for row in frame.collect()]


def _pairs(events: DataFrame) -> int:
    """Return how many pairs of a topic and a broker are in them."""
    each = F.expr("aggregate(rows.topics, 0L, (pairs, topics) -> pairs + coalesce(size(topics), 0))")
    return int(events.agg(F.coalesce(F.sum(each), F.lit(0))).collect()[0][0])


def _write_reports(
    run: Run,
    source: Source,
    whole: DataFrame,
    options: Options,
    progress: Progress,
    of: tuple[Window, ...],
    final_ms: int,
    *,
    full: bool,
) -> None:
    """`of`: the windows that are not closed yet. Those that end by `final_ms` are closed with this run."""
    versions = run.read(schemas.ROUTE_VERSIONS).where(_meets(*span(of))).count()
    stays = known_until(run.read(schemas.BROKER_SESSIONS), earlier(source.as_of, source.as_of_ms))
    slots = slot_states(stays, source.as_of_ms, options.retire_after).persist()
    brokers = broker_states(slots).persist()
    writable = writable_states(slots, run.read(schemas.BROKER_VERSIONS), source.as_of_ms).persist()
    states = States(slots, brokers, writable)
    try:
        with enough_for(whole.sparkSession, versions, VERSIONS_OF_A_PARTITION):
            for batch in window_batches(of, final_ms, 1 + versions // VERSIONS_AT_ONCE):
                inputs = _inputs(run, source, whole, options, states, batch)
                for report in (report for report in CATALOGUE if report.windowed):
                    progress(f"report {report.name}, from {_date(span(batch)[0])}")
                    rows = make(report, inputs)
                    run.write(report.table, rows, open=f"to_ms > {final_ms}", full=full)
        for report in (report for report in CATALOGUE if not report.windowed):
            progress(report.name)
            run.write(report.table, make(report, inputs), open="true", full=True)
    finally:
        for persisted in states:
            persisted.unpersist()


class States(NamedTuple):
    """The states of slots, of brokers, and of brokers as ones to write to, in all of history."""

    slots: DataFrame
    brokers: DataFrame
    writable: DataFrame


def _inputs(
    run: Run, source: Source, whole: DataFrame, options: Options, states: States, of: tuple[Window, ...]
) -> Inputs:
    """Return the inputs of the reports of these windows."""
    begin, end = span(of)
    from_ms = begin - FADED_MS
    relevant = f"id_ms >= {from_ms} and least(id_ms, effective_ms) < {end + FADED_MS}"
    return Inputs(
        *states,
        sessions=run.read(schemas.BROKER_SESSIONS),
        broker_versions=run.read(schemas.BROKER_VERSIONS),
        route_versions=run.read(schemas.ROUTE_VERSIONS).where(_meets(begin, end)),
        events=clean(source.events.rows(Since(from_ms)).where(relevant), whole),
        registrations=_registrations(source, from_ms),
        heartbeats=source.heartbeats.rows(Since(from_ms)).where(f"id_ms >= {from_ms} and id_ms < {end}"),
        windows=of,
        ends=tuple(window for window in of if window.name in ("24h", "month")),
        hours=months(of),
        as_of=source.as_of_ms,
        late_ms=2 * options.largest_timeout,
        heartbeat_ms=options.heartbeat,
        objectives=options.slo,
        objective=options.slo_of(""),
    )


def _registrations(source: Source, from_ms: int) -> DataFrame:
    """Return all entries that name timeouts, however old; none where no heartbeat is compared with them."""
    events = source.events.rows(EVER if source.heartbeats.has_rows(Since(from_ms)) else NEVER)
    return events.where("kind in ('broker_registered', 'broker_updated')")


def _meets(begin_ms: int, end_ms: int) -> str:
    """Versions that reach into the windows; the partition's column spares reading the files of others."""
    month = f"date_format(timestamp_millis({begin_ms}), 'yyyy-MM')"
    later = f"(month = 'open' or month >= {month}) and (to_ms is null or to_ms > {begin_ms})"
    return f"{later} and from_ms <= {end_ms}"


def _date(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%d}"
