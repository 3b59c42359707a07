"""Whether a landed table has each entry once, and is as far as it says that it is."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mqpipeline.lake.check import Checked, check_files, check_log, shortened
from mqpipeline.lake.log import LakeError, Log, opened
from mqpipeline.lake.log_files import survey
from mqpipeline.lake.place import Place
from mqpipeline.landing.acknowledged import Acknowledged, is_other_incarnation
from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.progress import KEY_COLUMNS, WRITER, StreamProgress, of_rows, rows_lacking, said_by
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import Entry, Streams


def check(place: Place, landed: Landed) -> Checked:
    """Check a landed table against its log, its log against the files, and its positions against its rows."""
    name = landed.table.name
    damage = Checked(check_log(name, survey(place, WRITER)), [])
    try:
        log = opened(place, landed.table)
        said = said_by(log) if log else None
    except LakeError as error:
        return damage.and_also(Checked([f"{name}: {error}"], []))
    if log is None:
        return Checked([], [f"{name}: nothing has landed"])
    files = check_files(log, KEY_COLUMNS)
    positions = Checked([*_positions(log, landed, said, files.rows)], [])
    return files.and_also(damage).and_also(positions).and_also(_sequences(name, files.rows))


def check_streams(place: Place, landed: Landed, url: str, acknowledged: Acknowledged) -> Checked:
    """Check the positions of a landed table against the streams, and against what was acknowledged. Raises what the
    store's client raises if there is none."""
    log = opened(place, landed.table)
    said = (said_by(log) if log else None) or {}
    findings: list[str] = []
    remarks: list[str] = []
    if said:
        source = options_of({"url": url, "streams": ",".join(said), "retrySeconds": "0"})
        with Store(source) as store:
            streams = Streams(source, store)
            for stream, position in said.items():
                last = acknowledged(position)
                if position.at < last:
                    findings.append(
                        f"{stream}: {last} was acknowledged, and {position.id} is the last of the log: "
                        "mqpipeline repair, with --url"
                    )
                oldest, newest = streams.oldest(stream), streams.newest(stream)
                if oldest is None or newest is None:
                    remarks.append(f"{stream}: the store has no entries of it")
                elif is_other_incarnation(newest, position):
                    remarks.append(
                        f"{stream}: the stream there is another one than has landed last, as of a store that is new or "
                        "back: the next landing goes on with it"
                    )
                else:
                    findings += _against(stream, position, oldest, newest)
    return Checked(findings, remarks)


def _against(stream: str, position: StreamProgress, oldest: Entry, newest: Entry) -> Iterator[str]:
    if position.at > newest.id:
        yield (
            f"{stream}: {position.id} has landed, and the newest entry there is {newest.id}: a primary was lost, "
            "or REDIS_URL is of another server"
        )
    elif position.at < oldest.id and not _follows(position, oldest):
        yield (
            f"{stream}: {position.id} has landed, and the oldest entry there is {oldest.id}: entries between are lost"
        )


def _follows(position: StreamProgress, entry: Entry) -> bool:
    return entry.number(b"inc") == position.inc and entry.number(b"seq") == (position.seq or 0) + 1


def _positions(
    log: Log, landed: Landed, said: Mapping[str, StreamProgress] | None, rows: pa.Table | None
) -> Iterator[str]:
    name = log.table.name
    if said is None:
        return
    if lacking := rows_lacking(log, said):
        yield f"{name}: {sum(one.entries for one in said.values()):,} entries have landed, {lacking:,} more than it has"
    shown = of_rows(rows, landed)
    for stream, position in said.items():
        in_rows = shown.get(stream) or StreamProgress(position.namespace)
        if in_rows.id != position.id:
            yield f"{stream}: {position.id} has landed by the log, and {in_rows.id} by the rows"
    for stream in sorted(shown.keys() - said.keys()):
        yield f"{stream}: has rows and no position"
    if rows is not None and "batch" in rows.column_names:
        newest = pc.max(rows["batch"]).as_py() or 0
        if newest > log.batch(WRITER):
            yield f"{name}: has rows of batch {newest}, and the log ends with batch {log.batch(WRITER)}"


def _sequences(name: str, rows: pa.Table | None) -> Checked:
    """Entries of a namespace and incarnation are numbered 1, 2, 3 …; one that was read again is in a later batch."""
    if rows is None or "seq" not in rows.column_names:
        return Checked([], [])
    numbered = rows.filter(pc.field("inc").is_valid() & pc.field("seq").is_valid())
    of_batches = numbered.group_by(["namespace", "batch", "inc", "seq"]).aggregate([([], "count_all")])
    twice = of_batches.filter(pc.field("count_all") > 1).group_by(["namespace", "batch", "inc"])
    bounds = [("seq", "min"), ("seq", "max"), ("seq", "count")]
    findings = [
        f"{name}: batch {row['batch']} of {row['namespace']} has {row['seq_count']:,} entries more than once, "
        f"{row['seq_min']} to {row['seq_max']} of incarnation {row['inc']}"
        for row in _listed(twice.aggregate(bounds))
    ]
    entries = of_batches.group_by(["namespace", "inc", "seq"]).aggregate([([], "count_all")])
    again = entries.filter(pc.field("count_all") > 1).group_by(["namespace", "inc"]).aggregate(bounds)
    remarks = [
        f"{name}: {row['seq_count']:,} entries of {row['namespace']}, {row['seq_min']} to {row['seq_max']} of "
        f"incarnation {row['inc']}, were read again in a later batch"
        for row in _listed(again)
    ]
    return Checked(
        [*shortened(findings, name), *shortened([*_holes(name, entries)], name)],
        [*shortened(remarks, name)],
    )


def _holes(name: str, entries: pa.Table) -> Iterator[str]:
    """Return the holes of each incarnation; what was before the first entry that ever landed is no hole."""
    last: Mapping[str, Any] = {}
    for row in entries.sort_by([(of, "ascending") for of in ("namespace", "inc", "seq")]).to_pylist():
        if row["namespace"] != last.get("namespace"):
            expected = row["seq"]
        else:
            expected = last["seq"] + 1 if row["inc"] == last["inc"] else 1
        if row["seq"] > expected:
            yield (
                f"{name}: {row['namespace']} lacks {expected} to {row['seq'] - 1} of incarnation {row['inc']}, "
                f"{row['seq'] - expected:,} entries"
            )
        last = row


def _listed(rows: pa.Table) -> list[dict[str, Any]]:
    return rows.sort_by([(name, "ascending") for name in rows.column_names[:2]]).to_pylist()  # type: ignore[no-any-return]
