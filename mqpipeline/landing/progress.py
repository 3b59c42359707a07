"""How far a landing has come. Each commit to a landed table says it of all streams."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from mqpipeline.lake.log import Log, damaged
from mqpipeline.lake.place import Place
from mqpipeline.landing.kinds import Landed
from pyspark_redis_stream.ids import Id, parsed

WRITER: Final = "landing"
"""How a landed table's log names who adds batches to it."""
STREAMS: Final = "streams"
"""Under which a commit says the progress of streams, as JSON."""
KEY_COLUMNS: Final = ("namespace", "batch", "id_ms", "id_n", "inc", "seq", "rejected")
"""What identifies a row, numbers its entry, and says whether that could be read."""


class StreamProgress(msgspec.Struct, frozen=True):
    """How far one stream was read: the entry that was landed last (`inc` and `seq` where it has them); everything that
    happened before `as_of_ms` of the Redis clock has landed; entries landed, repeats included; of these rejected; how
    often entries were missing before a batch, and how often reading started over because a primary was lost."""

    namespace: str
    id: str = "0-0"
    inc: int | None = None
    seq: int | None = None
    as_of_ms: int = 0
    entries: int = 0
    rejected: int = 0
    holes: int = 0
    rereads: int = 0

    @property
    def at(self) -> Id:
        return parsed(self.id)


class Progress(msgspec.Struct, frozen=True):
    """Batches 1 to `batch` have landed. `present` are the streams that were there at the last look; others are gone, or
    no longer named."""

    batch: int = 0
    streams: dict[str, StreamProgress] = {}
    present: frozenset[str] = frozenset()

    @property
    def as_of_ms(self) -> int:
        """Return the least of all streams that are present, of all if none is."""
        names = self.present or self.streams.keys()
        return min((stream.as_of_ms for name, stream in self.streams.items() if name in names), default=0)

    @property
    def as_of(self) -> dict[str, int]:
        """Return `as_of_ms` by namespace."""
        return {stream.namespace: stream.as_of_ms for stream in self.streams.values()}

    @property
    def absent(self) -> dict[str, StreamProgress]:
        """The streams that are not present."""
        return {name: stream for name, stream in self.streams.items() if name not in self.present}

    @property
    def known(self) -> dict[str, StreamProgress]:
        """The streams that are present, or have had entries: not those that were once named by mistake."""
        return {n: stream for n, stream in self.streams.items() if stream.entries or n in self.present}

    def said(self) -> dict[str, str]:
        """Return what a commit says of it."""
        return {STREAMS: msgspec.json.encode(self.streams).decode()}


def progress_of(log: Log | None, landed: Landed) -> Progress:
    """Return what the newest commit says; if none does, as much as the rows do. Raises LakeError if the log lacks rows
    of what has landed."""
    if log is None:
        return Progress()
    said = said_by(log)
    if said is None:
        rows = key_rows(log.place, (file.path for file in log.files()))
        return Progress(log.batch(WRITER), of_rows(rows, landed))
    _refuse_lost_entries(log, said)
    return Progress(log.batch(WRITER), said)


def said_by(log: Log) -> dict[str, StreamProgress] | None:
    """Return what the newest commit that says anything of streams says, None if none does."""
    said = log.said(STREAMS)
    try:
        return None if said is None else msgspec.json.decode(said, type=dict[str, StreamProgress])
    except (msgspec.DecodeError, TypeError) as error:
        raise damaged(log.place, f"its newest positions: {error}") from None


def rows_lacking(log: Log, streams: Mapping[str, StreamProgress]) -> int:
    """Return how many entries have landed that are in no file of the log; 0 where the log does not say it.

    delta-rs takes an empty log entry for one of a commit that changed nothing."""
    rows = [file.rows for file in log.files()]
    if None in rows:
        return 0
    return sum(stream.entries for stream in streams.values()) - sum(filter(None, rows))


def of_rows(rows: pa.Table | None, landed: Landed) -> dict[str, StreamProgress]:
    """Return the progress that rows show (of them KEY_COLUMNS, those that there are): of each namespace, the entry with
    the greatest id of its newest batch is the last one."""
    if rows is None:
        return {}
    now_ms = time.time_ns() // 1_000_000  # an id may be of a time that has not come
    place = rows.column_names.index("id_ms")
    rows = rows.set_column(place, "id_ms", rows["id_ms"].cast(pa.uint64(), safe=False))  # as the store counts
    order = [(name, "ascending") for name in ("batch", "id_ms", "id_n") if name in rows.column_names]
    rows = rows.select([name for name in KEY_COLUMNS if name in rows.column_names]).sort_by(order)
    of_columns = [(name, of) for name in rows.column_names[1:] for of in ("last", "count")]
    last = rows.group_by("namespace", use_threads=False).aggregate(of_columns)
    return {
        landed.stream(row["namespace"]): StreamProgress(
            row["namespace"],
            str(Id(row["id_ms_last"], row["id_n_last"])),
            row.get("inc_last"),
            row.get("seq_last"),
            as_of_ms=min(row["id_ms_last"], now_ms),
            entries=row["id_ms_count"],
            rejected=row.get("rejected_count", 0),
        )
        for row in last.to_pylist()
    }


def key_rows(place: Place, paths: Iterable[str]) -> pa.Table | None:
    """Return KEY_COLUMNS of files, None if there are none."""
    tables = []
    for path in paths:
        with place.open(path) as opened:
            tables.append(pq.ParquetFile(opened).read(columns=[*KEY_COLUMNS]))  # those that it has
    return pa.concat_tables(tables) if tables else None


def _refuse_lost_entries(log: Log, streams: Mapping[str, StreamProgress]) -> None:
    if (lacking := rows_lacking(log, streams)) > 0:
        raise damaged(log.place, f"{lacking:,} entries that have landed are in no file of it")
