"""Repair of a landed table whose log is damaged or lost: back to the last version that is whole, then what is in files
only comes in again, each batch once. No file is deleted, ever."""

import secrets
import time
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby, pairwise
from operator import and_
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import create_table_with_add_actions

from mqpipeline.lake.files import NewFile, Written, schema_of, statistics_of, written_before
from mqpipeline.lake.log import LOG, File, LakeError, Log, entry, properties, refuse_old, settings
from mqpipeline.lake.log_files import ASIDE, LogFiles, copied, survey
from mqpipeline.lake.place import Place, is_data
from mqpipeline.landing.acknowledged import Acknowledged, nothing_known
from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.progress import (
    KEY_COLUMNS,
    WRITER,
    Progress,
    StreamProgress,
    key_rows,
    of_rows,
    rows_lacking,
    said_by,
)
from pyspark_redis_stream.ids import Id

BATCH: Final = ("namespace", "batch")
ENTRY: Final = ("namespace", "id_ms", "id_n")
ROW: Final = ("namespace", "batch", "id_ms", "id_n")
AT: Final = "at"
UNFINISHED: Final = ".json.new"
"""How the name of a log entry ends that is to be the next one, until the damaged ones are aside."""
Indexes = npt.NDArray[np.int64]
FOLDER: Final = "%Y%m%dT%H%M%SZ"


class Candidate(msgspec.Struct, frozen=True):
    """A file that is in no log: its key columns, which of its rows the table wants, and how many batches it has."""

    path: str
    rows: pa.Table
    wanted: Indexes
    batches: int

    @property
    def whole(self) -> bool:
        """Whether all of its rows are wanted."""
        return len(self.wanted) == len(self.rows)

    @property
    def wanted_rows(self) -> pa.Table:
        """Key columns of these."""
        return self.rows.take(self.wanted)


class Repair(msgspec.Struct, frozen=True):
    """What is to be done for a table: lost files leave it; of misstated ones the log says what is so; others come in
    again, some of them less rows that are there already."""

    place: Place
    landed: Landed
    log: LogFiles
    lost: tuple[File, ...]
    misstated: tuple[File, ...]
    again: tuple[Candidate, ...]
    left_out: tuple[str, ...]
    unreadable: tuple[str, ...]
    progress: Progress

    def lines(self) -> Iterator[str]:
        """Say it, a line each."""
        name = self.landed.table.name
        if self.log.version < 0:
            yield f"{name}: there is no log that can be read; a new one is made of the files"
        else:
            yield f"{name}: the log is whole up to version {self.log.version}; the table goes back to it"
        if self.log.aside:
            yield f"{name}: {len(self.log.aside)} files of the log move to {LOG}/{ASIDE}<time>/"
        for file in self.lost:
            yield f"{name}: {file.path} is lost or damaged, {file.rows} entries: copy it back if you can, else it goes"
        for file in self.misstated:
            yield f"{name}: of {file.path} the log says what is not so; it is read, and the log says what it has"
        rows = sum(len(file.wanted) for file in self.again)
        yield f"{name}: {len(self.again)} files with {rows:,} entries come in that are in no log"
        if self.left_out:
            yield f"{name}: {len(self.left_out)} files stay out: their entries are in others, or in the stream"
        for path in self.unreadable:
            yield f"{name}: {path} cannot be read and stays out"
        for stream, position in sorted(self.progress.streams.items()):
            yield f"{name}: {stream} has landed up to {position.id}; what follows is landed by the next run"


def planned(place: Place, landed: Landed, acknowledged: Acknowledged = nothing_known) -> Repair | None:
    """Return what a table needs, None if its log is in order or there is nothing. `acknowledged` is up to where the
    stream of a namespace was said to have landed, if the store says it. Raises LakeError where nothing can be done."""
    refuse_old(place)
    log = survey(place, WRITER)
    if _in_order(place, landed, log, acknowledged):
        return None
    with copied(place, log) as folder:
        return _planned(place, landed, log, _log(place, landed, log, folder), acknowledged)


def done(repair: Repair) -> None:
    """Do it; no other process may write to the table meanwhile. Killed at any point, the next one does the rest."""
    place, log = repair.place, repair.log
    misstated = [written_before(place, file.path, repair.landed.table) for file in repair.misstated]
    content = _commit(repair, misstated + [_file(repair, candidate) for candidate in repair.again])
    aside = f"{LOG}/{ASIDE}{time.strftime(FOLDER, time.gmtime())}-{secrets.token_hex(3)}"
    version = log.version + 1
    place.write(f"{aside}/{version}{UNFINISHED}", memoryview(content))
    for path in log.aside:
        place.move(path, f"{aside}/{path.rpartition('/')[2]}")
    place.move(f"{aside}/{version}{UNFINISHED}", entry(version))
    for path in _unfinished(place):
        place.move(f"{LOG}/{path}", f"{LOG}/{path.removesuffix(UNFINISHED)}")


def _in_order(place: Place, landed: Landed, log: LogFiles, acknowledged: Acknowledged) -> bool:
    if log.aside or _unfinished(place):
        return False
    if log.version < 0:
        return not any(map(is_data, place.stored()))
    table = Log(place, landed.table, DeltaTable(place.url))
    said = said_by(table)
    if said is not None and any(one.at < acknowledged(one) for one in said.values()):
        return False
    if said is not None and rows_lacking(table, said) != 0:
        return False
    lost = _lost(table)
    return not lost and not _misstated(table, lost)


def _lost(table: Log) -> list[File]:
    """Return files of the log that are not there, or not as they were."""
    stored = table.place.stored()
    return [
        file
        for file in table.files()
        if file.path not in stored
        or stored[file.path].size != file.size
        or _rows_of(table.place, file.path) is None
    ]


def _misstated(table: Log, lost: Sequence[File]) -> list[File]:
    """Return the other files of the log of whose rows it says what is not so."""
    return [
        file
        for file in table.files()
        if file not in lost
        and not statistics_of(table.place, file.path, table.table).agree(file.rows, file.least, file.most)
    ]


def _rows_of(place: Place, path: str) -> pa.Table | None:
    """Return the key columns of a file, None if it cannot be read, all of it."""
    try:
        with place.open(path) as opened:
            rows = pq.ParquetFile(opened).read()
    except (pa.ArrowException, OSError):
        return None
    return rows.select([name for name in KEY_COLUMNS if name in rows.column_names])


def _unfinished(place: Place) -> list[str]:
    return place.under(LOG).names(UNFINISHED)


def _log(place: Place, landed: Landed, log: LogFiles, folder: Path) -> Log | None:
    """Return the log of a folder with a copy of it, None if there is none in it; its files are at the place."""
    return None if log.version < 0 else Log(place, landed.table, DeltaTable(folder))


def _planned(
    place: Place, landed: Landed, log: LogFiles, table: Log | None, acknowledged: Acknowledged
) -> Repair:
    lost = _lost(table) if table else []
    misstated = _misstated(table, lost) if table else []
    in_log = {file.path for file in table.files()} if table else set()
    rows = key_rows(place, in_log - {file.path for file in lost})
    candidates, unreadable = _candidates(place, in_log, rows)
    once = [file for of_day in _by_folder(candidates) for file in _each_row_once(of_day)]
    again = _less_unfinished(once, rows, log.batches_after(), acknowledged)
    out = {file.path for file in candidates} - {file.path for file in again}
    if table is None and not again:
        raise LakeError(f"{place.name} has no log, and no file that can be read")
    parts = [*([] if rows is None else [rows]), *(file.wanted_rows for file in again)]
    all_rows = pa.concat_tables(parts, promote_options="default") if parts else None
    progress = _progress(table, of_rows(all_rows, landed), _last_batch(all_rows) if parts else 0)
    return Repair(
        place,
        landed,
        log,
        tuple(lost),
        tuple(misstated),
        tuple(again),
        tuple(sorted(out)),
        tuple(unreadable),
        progress,
    )


def _progress(table: Log | None, streams: dict[str, StreamProgress], batch: int) -> Progress:
    """Return what rows show of streams, and what the log says of them that rows do not show."""
    said = (said_by(table) if table else None) or {}
    for stream, known in said.items():
        of_stream = streams.get(stream) or StreamProgress(known.namespace)
        streams[stream] = msgspec.structs.replace(
            of_stream,
            as_of_ms=max(of_stream.as_of_ms, known.as_of_ms),
            holes=known.holes,
            rereads=known.rereads,
        )
    return Progress(max(batch, table.batch(WRITER) if table else 0), streams)


def _candidates(place: Place, in_log: set[str], rows: pa.Table | None) -> tuple[list[Candidate], list[str]]:
    """Return the files that are in no log, and the paths of those that cannot be read."""
    candidates, unreadable = [], []
    for path in filter(is_data, place.stored()):
        if path in in_log:
            continue
        if (of_file := _rows_of(place, path)) is None:
            unreadable.append(path)
            continue
        batches = pc.count_distinct(of_file["batch"]).as_py() if "batch" in of_file.column_names else 1
        wanted = np.union1d(_absent(of_file, rows, BATCH), _absent(of_file, rows, ENTRY))
        candidates.append(Candidate(path, of_file, wanted, batches))
    return candidates, unreadable


def _by_folder(candidates: list[Candidate]) -> Iterator[list[Candidate]]:
    """Those of a day together: the rows of different days differ."""
    for _, of_folder in groupby(candidates, key=lambda file: file.path.partition("/")[0]):
        yield list(of_folder)


def _each_row_once(candidates: list[Candidate]) -> Iterator[Candidate]:
    """Leave out rows that another file has: one of more batches is what several became, and comes first."""
    taken: pa.Table | None = None
    for file in sorted(candidates, key=lambda file: (not file.whole, -file.batches, -len(file.rows))):
        fresh = file.wanted[_absent(file.wanted_rows, taken, ROW)]
        if not len(fresh):
            continue
        candidate = msgspec.structs.replace(file, wanted=fresh)
        rows = candidate.wanted_rows
        taken = rows if taken is None else pa.concat_tables([taken, rows])
        yield candidate


def _absent(rows: pa.Table, others: pa.Table | None, names: Sequence[str]) -> Indexes:
    """Return which rows are not among others, by these columns; by ROW where there are no batches."""
    if others is None:
        return np.arange(len(rows))
    keys = [name for name in (names if "batch" in rows.column_names else ROW) if name in rows.column_names]
    numbered = rows.select(keys).append_column(AT, pa.array(range(len(rows)), pa.int64()))
    known = others.select(keys).group_by(keys).aggregate([])
    return np.sort(np.asarray(numbered.join(known, keys, join_type="left anti")[AT]))


def _less_unfinished(
    candidates: list[Candidate], rows: pa.Table | None, committed: set[int], acknowledged: Acknowledged
) -> list[Candidate]:
    """Leave out of the last batch what is not all of it: a process that was killed may have written some of its files.

    The stream still has its entries, unless they were acknowledged. A batch was committed if the log says it, if
    another followed, if it was made one file with others, or if it was acknowledged."""
    last = max((_last_batch(file.wanted_rows) for file in candidates), default=0)
    of_last = [file for file in candidates if _last_batch(file.wanted_rows) == last]
    followed = rows is not None and _last_batch(rows) > last
    if last == 0 or last in committed or followed or any(file.batches > 1 for file in of_last):
        return candidates
    of_others = [file for file in candidates if _last_batch(file.wanted_rows) < last]
    before = [file.wanted_rows for file in of_others]
    known = pa.concat_tables([*([] if rows is None else [rows]), *before, of_last[0].rows.slice(0, 0)])
    added = pa.concat_tables([file.wanted_rows for file in of_last])
    namespaces = pc.unique(added["namespace"]).to_pylist()
    whole = {
        namespace
        for namespace in namespaces
        if _last_id(added, namespace) <= acknowledged(StreamProgress(namespace))
        or _follows(known, added, namespace)
    }
    return [*of_others, *(file for file in of_last if _namespace(file) in whole)]


def _last_id(rows: pa.Table, namespace: str) -> Id:
    of_namespace = rows.filter(pc.field("namespace") == namespace).select(["id_ms", "id_n"]).to_pylist()
    return max(Id(row["id_ms"], row["id_n"]) for row in of_namespace)


def _follows(known: pa.Table, added: pa.Table, namespace: str) -> bool:
    """Whether entries of a namespace are numbered on from the known ones, without a hole."""
    numbers = [_last_number(known, namespace)]
    numbers += [(row["inc"], row["seq"]) for row in _sorted(added, namespace).to_pylist()]
    return all(
        after[1] == (before[1] + 1 if after[0] == before[0] else 1) for before, after in pairwise(numbers)
    )


def _last_number(rows: pa.Table, namespace: str) -> tuple[int, int]:
    of_namespace = _sorted(rows, namespace).slice(max(0, len(_sorted(rows, namespace)) - 1)).to_pylist()
    return (of_namespace[0]["inc"], of_namespace[0]["seq"]) if of_namespace else (0, 0)


def _sorted(rows: pa.Table, namespace: str) -> pa.Table:
    """Numbered entries of a namespace in the order of their ids."""
    wanted = pc.field("namespace") == namespace, pc.field("seq").is_valid(), pc.field("inc").is_valid()
    numbered = rows.filter(reduce(and_, wanted))
    return numbered.sort_by([(name, "ascending") for name in ("batch", "id_ms", "id_n")])


def _namespace(file: Candidate) -> str:
    """Return the namespace of a file that one batch wrote."""
    return str(file.rows["namespace"][0])


def _last_batch(rows: pa.Table) -> int:
    """0 if there are none."""
    return int(pc.max(rows["batch"]).as_py() or 0) if "batch" in rows.column_names else 0


def _file(repair: Repair, candidate: Candidate) -> Written:
    """Return what a log says of a file; if not all of its rows are wanted, of a new one with those."""
    place, table = repair.place, repair.landed.table
    written = written_before(place, candidate.path, table)
    if candidate.whole:
        return written
    with place.open(candidate.path) as opened:
        rows = pq.ParquetFile(opened).read().take(candidate.wanted)
    new = NewFile(rows.schema.remove_metadata(), table.bounded, written.partition)
    for batch in rows.combine_chunks().to_batches():
        new.add(batch)
    return new.written(place)


def _commit(repair: Repair, files: Sequence[Written]) -> bytes:
    """Return the log entry that adds the files; nothing is committed at the place."""
    place, table, log = repair.place, repair.landed.table, repair.log
    actions = [file.action() for file in files]
    removals = [file.removal() for file in repair.lost]
    partitions = [one.name for one in table.partitions]
    said = properties(WRITER, repair.progress.batch, repair.progress.said())
    with copied(place, log) as folder:
        known = _log(place, repair.landed, log, folder)
        if known is None:
            create_table_with_add_actions(
                str(folder),
                schema_of(place, [file.path for file in files], table),
                actions,
                partition_by=partitions,
                name=table.name,
                configuration=settings(table),
                commit_properties=said,
            )
        else:
            known.delta.create_write_transaction(
                [*actions, *removals], "append", known.delta.schema(), partitions, commit_properties=said
            )
        return (folder / entry(log.version + 1)).read_bytes()
