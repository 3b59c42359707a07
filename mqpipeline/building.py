"""From the landing to tables and reports: what a run computes again, and what it takes from the run before.

A full run reads all landed events. An incremental run reads the events since the previous run and the open rows, and
for reports the events of open windows, from files that the log names; it requires continuous history: no hole, repeat,
new incarnation, or event before the end of closed windows, and no namespace that was silent when these were closed and
is back. Both give the same rows.

Reports of long history are computed some months at a time, which bounds the memory of a step.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from types import MappingProxyType
from typing import NamedTuple, Protocol, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mqpipeline import lines, schemas
from mqpipeline.clean import clean, counts, gaps, runs
from mqpipeline.landing.reading import EVER, NEVER, Since
from mqpipeline.options import DAY_MS, Options
from mqpipeline.partitions import enough_for, in_one
from mqpipeline.reports.catalogue import CATALOGUE
from mqpipeline.reports.conflicts import WITHIN_MS
from mqpipeline.reports.inputs import Inputs, make
from mqpipeline.schemas import Table
from mqpipeline.states.brokers import broker_states, writable_states
from mqpipeline.states.slots import known_until, slot_states
from mqpipeline.tables import check, health, increments
from mqpipeline.tables.broker_versions import broker_versions
from mqpipeline.tables.route_versions import route_versions
from mqpipeline.tables.sessions import sessions
from mqpipeline.warehouse import Folded, Planned, Run, Snapshot, earlier
from mqpipeline.windows import Window, month_of, months, span, window_batches, windows

VERSIONS_AT_ONCE = 40_000_000
"""Route versions that reports are made of at a time: more would take more memory, fewer more time."""
VERSIONS_TOGETHER = 100_000
"""Of routes, up to which the tables, and the reports, are written in one job each: planning is most of their time."""
VERSIONS_OF_A_PARTITION = 500_000
"""All of them are in the memory of one Python process together, which takes some 300 MB then."""
LONGEST_MS = 3_653 * DAY_MS
"""Windows begin ten years ago at most, whatever an odd entry says of its time."""
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

    def first_ms(self) -> int | None:
        """Return the time of the first row, None if there is none."""


class Source(NamedTuple):
    """What a run works on: EVENTS and HEARTBEATS as landed, and until when all is known: of all namespaces that are
    present, and of each (`as_of`); of one that is gone it is earlier, and of heartbeats (`heartbeats_as_of_ms`) it may
    be. `landed` counts entries of each namespace."""

    events: LandedRows
    heartbeats: LandedRows
    as_of_ms: int
    as_of: Mapping[str, int] = MappingProxyType({})
    landed: Mapping[str, health.Entries] = MappingProxyType({})
    heartbeats_as_of_ms: float = inf


def build(run: Run, source: Source, options: Options, progress: Progress, *, full: bool = False) -> Snapshot:
    """Write the run's tables and reports and commit it; `progress` is called with each step before it."""
    full = full or _is_back(run.base, source.as_of) or _has_lost(run, source)
    covered = _nothing_new(run, source, progress) if not full else None
    if covered is None:
        covered = _make_tables(run, source, progress, full=full)
    of = windows(source.as_of_ms, covered.since_ms)
    whole = covered.whole
    if whole is None:  # the windows begin before what is new
        from_ms = span(of)[0] - FADED_MS
        whole = _planned_apart(runs(source.events.rows(Since(from_ms)).where(f"id_ms >= {from_ms}")))
    with _states(run, source, options) as states:
        final_ms = _final_ms(
            source, options, states, of, 0 if covered.whole is not None else run.base.final_ms
        )
        _write_reports(
            run, source, whole, options, progress, states, of, final_ms, full=covered.whole is not None
        )
    return run.commit(as_of_ms=source.as_of_ms, as_of=source.as_of, final_ms=final_ms, folded=covered.folded)


class _Covered(NamedTuple):
    """How far the tables cover each namespace, from when on windows are open, and the runs of all events, None where
    only a part of these was read."""

    folded: Mapping[str, Folded]
    since_ms: int
    whole: DataFrame | None


def _is_back(base: Snapshot, as_of: Mapping[str, int]) -> bool:
    """Return whether more is known of a namespace of which windows were closed before they were over."""
    return any(at_ms < base.final_ms and as_of.get(name, 0) > at_ms for name, at_ms in base.as_of.items())


def _has_lost(run: Run, source: Source) -> bool:
    """Return whether entries that the tables were made of are there no more, as after `mqpipeline repair`."""
    before = run.warehouse.rows(schemas.HEALTH, run.base)
    known = ((source.landed[row["namespace"]], row) for row in before if row["namespace"] in source.landed)
    return any((now.entries or 0) < (row["entries"] or 0) for now, row in known)


def _nothing_new(run: Run, source: Source, progress: Progress) -> _Covered | None:
    """Leave the tables as they are if the log has no event that they do not have; None if it has."""
    if not run.base.folded or source.events.has_rows(_since_last(run)):
        return None
    progress("nothing has come since the last run")
    _write_seen(run, source, health.Seen((), None, ()), run.warehouse.rows(schemas.HEALTH, run.base))
    return _Covered(run.base.folded, run.base.final_ms, None)


class _Read(NamedTuple):
    """What a run reads: events, their runs, and the clean entries among them."""

    events: DataFrame
    whole: DataFrame
    entries: DataFrame

    @classmethod
    def of(cls, events: DataFrame) -> Self:
        """Return these events with what follows from them."""
        whole = _planned_apart(runs(events))
        return cls(events, whole, clean(events, whole))


def _make_tables(run: Run, source: Source, progress: Progress, *, full: bool) -> _Covered:
    """Write the tables of all events, or of those since the last run if these go on where it ended."""
    base = run.base
    known = _positions(run.warehouse.spark, base.folded)
    events = source.events.rows() if full else source.events.rows(_since_last(run))
    if not full and not (base.folded and _continues(events, known, base.final_ms)):
        full, events = True, source.events.rows()
    progress("reading all that was landed" if full else "reading what came since the last run")
    read = _Read.of(events if full else increments.fresh(events, known))
    _write_tables(run, read, progress, full=full)
    positions = _planned_apart(
        increments.positions(events, read.entries, run.read(schemas.GAPS))
        if full
        else increments.moved(events, read.entries, known)
    )
    _write_health(run, source, read, positions, progress, full=full)
    folded = {
        row["namespace"]: Folded(row["inc"], row["seq"], row["batch"], row["recorded"])
        for row in positions.collect()
    }
    if full:
        return _Covered(folded, _begin_ms(source), read.whole)
    return _Covered(folded, base.final_ms, None)


def _begin_ms(source: Source) -> int:
    """Return when the windows of all of history begin."""
    first_ms = source.events.first_ms()
    return source.as_of_ms if first_ms is None else max(first_ms, source.as_of_ms - LONGEST_MS)


def _planned_apart(few: DataFrame) -> DataFrame:
    """Return the same few rows without their plan, so that what is computed from them is planned much sooner."""
    return in_one(few.sparkSession, few.toArrow())


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
    return in_one(spark, rows, increments.POSITIONS)


def _write(run: Run, plans: Iterable[Planned], versions: int) -> None:
    """Write what is planned, made of so many route versions: one table after the other, or all in one job."""
    if versions <= VERSIONS_TOGETHER:
        run.write(*plans)
    else:
        for planned in plans:
            run.write(planned)


def _write_tables(run: Run, read: _Read, progress: Progress, *, full: bool) -> None:
    """Write the tables of the events read."""
    many = _pairs(read.events) + (0 if full else run.warehouse.count_open(schemas.ROUTE_VERSIONS, run.base))
    members = read.entries.where("rows is null").persist()  # rows are most of the bytes
    try:
        _write(run, _tables(run, read, members, many, progress, full=full), many)
    finally:
        members.unpersist()


def _tables(
    run: Run, read: _Read, members: DataFrame, many: int, progress: Progress, *, full: bool
) -> Iterator[Planned]:
    """Plan the tables of the events read, `members` the entries without topics; of `many` versions of routes."""

    def carried(table: Table) -> DataFrame | None:
        return None if full else run.warehouse.read_open(table, run.base)

    if full:
        yield run.plan(schemas.GAPS, gaps(read.events, read.whole), full=True)
    progress("broker sessions")
    rows = sessions(members, carried(schemas.BROKER_SESSIONS))
    yield run.plan(schemas.BROKER_SESSIONS, rows, open="open", full=full)
    progress("broker versions")
    rows = broker_versions(members, carried(schemas.BROKER_VERSIONS))
    yield run.plan(schemas.BROKER_VERSIONS, rows, open="to_ms is null", full=full)
    progress("route versions")
    with enough_for(run.warehouse.spark, many, VERSIONS_OF_A_PARTITION):
        versions = route_versions(
            read.entries, carried(schemas.ROUTE_VERSIONS), carried(schemas.BROKER_VERSIONS)
        )
        yield run.plan_arrow(schemas.ROUTE_VERSIONS, versions, open_without="to_ms", full=full)


def _write_health(
    run: Run, source: Source, read: _Read, positions: DataFrame, progress: Progress, *, full: bool
) -> None:
    """Write HEALTH, once all other tables are written."""
    progress("what is missing, and whether checkpoints agree")
    before = [] if full else run.warehouse.rows(schemas.HEALTH, run.base)
    counted = read if full or before else _Read.of(source.events.rows())  # of a run that did not count yet
    rounds = check.newest(check.rounds_of(read.entries, recorded=not full))
    frames = {"counts": counts(counted.events, counted.whole, positions), "rounds": rounds}
    if not before:
        frames["missing"] = health.missing(run.read(schemas.GAPS))
    rows = lines.rows(frames)
    checked = _checked(run, read.entries, rows["rounds"], rounds.schema)
    _write_seen(run, source, health.Seen(rows["counts"], rows.get("missing"), checked), before)


def _write_seen(run: Run, source: Source, seen: health.Seen, before: Iterable[health.Row]) -> None:
    """Write HEALTH of what this run has seen, and what was known `before`."""
    rows = health.health(seen, before, source.landed, source.as_of, source.as_of_ms)
    log_differences(rows)
    run.write_rows(schemas.HEALTH, rows)


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


def _checked(
    run: Run, entries: DataFrame, rounds: Sequence[health.Row], schema: StructType
) -> list[health.Row]:
    """Compare the tables with these checkpoint rounds of the clean entries."""
    if not rounds:
        return []
    begin_ms = min(row["round_begin"]["ms"] for row in rounds)
    end_ms = max(row["round_end"]["ms"] for row in rounds)
    routes = run.read(schemas.ROUTE_VERSIONS).where(_meets(begin_ms, end_ms))
    compared = in_one(run.warehouse.spark, rounds, schema)
    checks = check.checks(entries, run.read(schemas.BROKER_SESSIONS), routes, compared)
    return [row.asDict() for row in checks.collect()]


def _pairs(events: DataFrame) -> int:
    """Return how many pairs of a topic and a broker are in them."""
    each = F.expr("aggregate(rows.topics, 0L, (pairs, topics) -> pairs + coalesce(size(topics), 0))")
    return int(events.agg(F.coalesce(F.sum(each), F.lit(0))).collect()[0][0])


class States(NamedTuple):
    """The states of slots, of brokers, and of brokers as ones to write to, in all of history."""

    slots: DataFrame
    brokers: DataFrame
    writable: DataFrame


@contextmanager
def _states(run: Run, source: Source, options: Options) -> Iterator[States]:
    stays = known_until(run.read(schemas.BROKER_SESSIONS), earlier(source.as_of, source.as_of_ms))
    slots = slot_states(stays, source.as_of_ms, options.retire_after).persist()
    brokers = broker_states(slots).persist()
    writable = writable_states(slots, run.read(schemas.BROKER_VERSIONS), source.as_of_ms).persist()
    states = States(slots, brokers, writable)
    try:
        yield states
    finally:
        for persisted in states:
            persisted.unpersist()


def _final_ms(source: Source, options: Options, states: States, of: Iterable[Window], closed_ms: int) -> int:
    """Return until when windows are closed, those that ended by `closed_ms` among them: of months that no outage lasts
    beyond, of which all entries and heartbeats are there."""
    known_ms = min(source.as_of_ms, source.heartbeats_as_of_ms)
    final_ms = month_of(int(max(0, known_ms - max(2 * options.largest_timeout, WITHIN_MS))))
    if not any(closed_ms < window.to_ms <= final_ms for window in of):
        return max(closed_ms, final_ms)
    lasting = states.brokers.where(f"state = 'DOWN' and to_ms >= {source.as_of_ms} and from_ms < {final_ms}")
    down_ms = lasting.agg(F.min("from_ms")).collect()[0][0]
    return final_ms if down_ms is None else max(closed_ms, month_of(down_ms))


def _write_reports(
    run: Run,
    source: Source,
    whole: DataFrame,
    options: Options,
    progress: Progress,
    states: States,
    of: tuple[Window, ...],
    final_ms: int,
    *,
    full: bool,
) -> None:
    """`of`: the windows that are not closed yet. Those that end by `final_ms` are closed with this run."""
    versions = run.count_since(schemas.ROUTE_VERSIONS, _date(span(of)[0])[:7])

    def planned() -> Iterator[Planned]:
        for batch in window_batches(of, final_ms, 1 + versions // VERSIONS_AT_ONCE):
            inputs = _inputs(run, source, whole, options, states, batch)
            for report in (report for report in CATALOGUE if report.windowed):
                progress(f"report {report.name}, from {_date(span(batch)[0])}")
                rows = make(report, inputs)
                yield run.plan(report.table, rows, open=f"to_ms > {final_ms}", full=full)
        for report in (report for report in CATALOGUE if not report.windowed):
            progress(report.name)
            yield run.plan(report.table, make(report, inputs), open="true", full=True)

    with enough_for(run.warehouse.spark, versions, VERSIONS_OF_A_PARTITION):
        _write(run, planned(), versions)


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
