"""From the landing to tables and reports: what a run makes anew, and what it takes from the run before.

A full run reads all that was landed. A later one reads only what came since, together with the rows that are still
open, as long as that continues what is known: no hole, no repeat, no new incarnation, nothing that happened before
the windows that are closed. Both give the same rows.

Reports of much history are made some months at a time, so that no step holds more than a part of it.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.clean import clean, gaps, runs
from pipeline.options import DAY_MS, Options
from pipeline.partitions import enough_for
from pipeline.reports.availability import availability
from pipeline.reports.churn import churn, churn_topics
from pipeline.reports.conflicts import conflicts
from pipeline.reports.detect import detect
from pipeline.reports.flap import flap
from pipeline.reports.incidents import incidents
from pipeline.reports.repair import repair
from pipeline.reports.skew import skew
from pipeline.reports.slo import slo
from pipeline.reports.timeouts import timeouts
from pipeline.schemas import Table
from pipeline.states.brokers import broker_states, writable_states
from pipeline.states.slots import slot_states
from pipeline.tables import increments
from pipeline.tables.broker_versions import broker_versions
from pipeline.tables.route_versions import route_versions
from pipeline.tables.sessions import sessions
from pipeline.warehouse import Folded, Run, Snapshot
from pipeline.windows import Window, month_of, months, pieces, span, windows

VERSIONS_AT_ONCE = 40_000_000
"""Of routes, while reports are made: more would take more memory, fewer more time."""
VERSIONS_OF_A_PARTITION = 500_000
"""All of them are in the memory of one Python process together, which takes some 300 MB then."""
FADED_MS = DAY_MS
"""What happened so long before a window or after it does not weigh in it: a flap score halves every 15 minutes, and no
act takes a day."""

Told = Callable[[str], None]


class Source(NamedTuple):
    """What a run works on: EVENTS and HEARTBEATS as landed, and when the newest of it was read."""

    events: DataFrame
    beats: DataFrame
    as_of_ms: int


def build(run: Run, source: Source, options: Options, told: Told, *, anew: bool = False) -> Snapshot:
    """Write the run's tables and reports and commit it; `told` hears what is being done."""
    base, events = run.base, source.events
    known = _marks(events, base.folded)
    anew = anew or not base.folded or not _continues(events, known, base.final_ms)
    told("reading all that was landed" if anew else "reading what came since the last run")
    read = events if anew else increments.fresh(events, known)
    whole = _at_hand(runs(read))
    entries = clean(read, whole)
    _write_tables(run, read, entries, told, anew=anew)
    if anew:
        run.write(schemas.GAPS, gaps(events, whole), anew=True)
    final_ms = month_of(source.as_of_ms - 2 * options.largest_timeout)
    since_ms = _first_ms(source) if anew else base.final_ms
    of = windows(source.as_of_ms, since_ms)
    if not anew:  # the windows begin before what is new
        whole = _at_hand(runs(events.where(f"id_ms >= {span(of)[0] - FADED_MS}")))
    _write_reports(run, source, whole, options, told, of, final_ms, anew=anew)
    newest = increments.marks(events, entries, None if anew else known).collect()
    folded = {
        row["namespace"]: Folded(row["inc"], row["seq"], row["batch"], row["settled"]) for row in newest
    }
    return run.commit(as_of_ms=source.as_of_ms, final_ms=final_ms, folded=folded)


def _at_hand(few: DataFrame) -> DataFrame:
    """The same rows, which are few, without how they came about: what is made of them is planned much sooner."""
    return few.sparkSession.createDataFrame(few.toArrow())


def _continues(events: DataFrame, known: DataFrame, final_ms: int) -> bool:
    """Whether what was landed since follows on what the tables tell, and changes no window that is closed."""
    if not increments.anew(events, known).isEmpty():
        return False
    return increments.fresh(events, known).where(f"least(id_ms, effective_ms) < {final_ms}").isEmpty()


def _marks(events: DataFrame, folded: Mapping[str, Folded]) -> DataFrame:
    rows = [(name, one.inc, one.seq, one.batch, one.settled) for name, one in folded.items()]
    return events.sparkSession.createDataFrame(rows, increments.MARK)


def _first_ms(source: Source) -> int:
    """When history begins."""
    first = source.events.agg(F.min("id_ms")).collect()[0][0]
    return source.as_of_ms if first is None else int(first)


def _write_tables(run: Run, read: DataFrame, entries: DataFrame, told: Told, *, anew: bool) -> None:
    """Of the events that were read, and of what is clean of them."""

    def carried(table: Table) -> DataFrame | None:
        return None if anew else run.warehouse.read_open(table, run.base)

    members = entries.where("rows is null").persist()  # rows are most of the bytes
    try:
        told("broker sessions")
        found = sessions(members, carried(schemas.BROKER_SESSIONS))
        run.write(schemas.BROKER_SESSIONS, found, open="open", anew=anew)
        told("broker versions")
        found = broker_versions(members, carried(schemas.BROKER_VERSIONS))
        run.write(schemas.BROKER_VERSIONS, found, open="to_ms is null", anew=anew)
    finally:
        members.unpersist()
    told("route versions")
    open_before = carried(schemas.ROUTE_VERSIONS)
    many = _told_pairs(read) + (open_before.count() if open_before is not None else 0)
    with enough_for(read.sparkSession, many, VERSIONS_OF_A_PARTITION):
        found = route_versions(entries, open_before, carried(schemas.BROKER_VERSIONS))
        run.write(schemas.ROUTE_VERSIONS, found, open="to_ms is null", anew=anew, placed=True)


def _told_pairs(events: DataFrame) -> int:
    """How many pairs of a topic and a broker they tell of."""
    each = F.expr("aggregate(rows.topics, 0L, (pairs, topics) -> pairs + coalesce(size(topics), 0))")
    return int(events.agg(F.coalesce(F.sum(each), F.lit(0))).collect()[0][0])


def _write_reports(
    run: Run,
    source: Source,
    whole: DataFrame,
    options: Options,
    told: Told,
    of: tuple[Window, ...],
    final_ms: int,
    *,
    anew: bool,
) -> None:
    """`of`: the windows that are not closed yet. Those that end by `final_ms` are closed with this run."""
    versions = run.read(schemas.ROUTE_VERSIONS).where(_meets(*span(of))).count()
    slots = slot_states(run.read(schemas.BROKER_SESSIONS), source.as_of_ms, options.retire_after).persist()
    brokers = broker_states(slots).persist()
    writable = writable_states(slots, run.read(schemas.BROKER_VERSIONS), source.as_of_ms).persist()
    states = States(slots, brokers, writable)
    try:
        with enough_for(whole.sparkSession, versions, VERSIONS_OF_A_PARTITION):
            for piece in pieces(of, final_ms, 1 + versions // VERSIONS_AT_ONCE):
                for table, rows in _reports(run, source, whole, options, states, piece).items():
                    told(f"{table.name.replace('_', ' ')}, from {_date(span(piece)[0])}")
                    run.write(table, rows(), open=f"to_ms > {final_ms}", anew=anew)
        told("incidents")
        run.write(
            schemas.INCIDENTS, incidents(slots, run.read(schemas.BROKER_SESSIONS)), open="true", anew=True
        )
    finally:
        for persisted in states:
            persisted.unpersist()


class States(NamedTuple):
    """Of slots, brokers, and brokers as ones to write to, in all of history."""

    slots: DataFrame
    brokers: DataFrame
    writable: DataFrame


def _reports(
    run: Run, source: Source, whole: DataFrame, options: Options, states: States, of: tuple[Window, ...]
) -> dict[Table, Callable[[], DataFrame]]:
    """How each report of these windows is made."""
    as_of, late_ms = source.as_of_ms, 2 * options.largest_timeout
    begin, end = span(of)
    stays, brokers_were = run.read(schemas.BROKER_SESSIONS), run.read(schemas.BROKER_VERSIONS)
    brokers = states.brokers
    routes = run.read(schemas.ROUTE_VERSIONS).where(_meets(begin, end))
    told = f"id_ms >= {begin - FADED_MS} and least(id_ms, effective_ms) < {end + FADED_MS}"
    entries = clean(source.events.where(told), whole)
    beats = source.beats.where(f"id_ms >= {begin - FADED_MS} and id_ms < {end}")
    joined = source.events.where("kind in ('broker_registered', 'broker_updated')")  # timeouts, however old
    at_ends = [window for window in of if window.name in ("24h", "month")]
    return {
        schemas.REPORT_AVAILABILITY: lambda: availability(
            brokers, states.writable, routes, of, as_of, late_ms
        ),
        schemas.REPORT_SLO: lambda: slo(brokers, of, as_of, options.slo, options.slo_of(""), late_ms),
        schemas.REPORT_REPAIR: lambda: repair(brokers, of, as_of, late_ms),
        schemas.REPORT_DETECT: lambda: detect(stays, joined, beats, of, as_of, late_ms, options.heartbeat),
        schemas.REPORT_FLAP: lambda: flap(stays, entries, of, as_of, late_ms),
        schemas.REPORT_CHURN: lambda: churn(entries, brokers_were, of, months(of), as_of, late_ms),
        schemas.REPORT_CHURN_TOPICS: lambda: churn_topics(entries, routes, of, as_of, late_ms),
        schemas.REPORT_SKEW: lambda: skew(stays, brokers_were, routes, at_ends, as_of, late_ms),
        schemas.REPORT_CONFLICTS: lambda: conflicts(entries, stays, of, as_of, late_ms),
        schemas.REPORT_TIMEOUTS: lambda: timeouts(beats, stays, of, as_of, late_ms),
    }


def _meets(begin_ms: int, end_ms: int) -> str:
    """Versions that reach into the windows; the partition's column spares reading the files of others."""
    month = f"date_format(timestamp_millis({begin_ms}), 'yyyy-MM')"
    later = f"(month = 'open' or month >= {month}) and (to_ms is null or to_ms > {begin_ms})"
    return f"{later} and from_ms <= {end_ms}"


def _date(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%d}"
