"""How far a landing has come. Each commit to a landed table says it of all streams."""

from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from mqpipeline.lake.log import Log
from mqpipeline.landing.kinds import Landed
from mqpipeline.source.ids import Id, parsed

WRITER: Final = "landing"
"""How a landed table's log names who adds batches to it."""
STREAMS: Final = "streams"
"""Under which a commit says the progress of streams, as JSON."""


class StreamProgress(msgspec.Struct, frozen=True):
    """Of one stream: the entry that was landed last (`inc` and `seq` where it has them); everything that happened
    before `as_of_ms` of the Redis clock has landed; entries landed, repeats included; of these rejected; how often
    entries were missing before a batch, and how often reading started over because a primary was lost."""

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
    """Batches 1 to `batch` have landed."""

    batch: int = 0
    streams: dict[str, StreamProgress] = {}

    @property
    def as_of_ms(self) -> int:
        """Of all streams together."""
        return min((stream.as_of_ms for stream in self.streams.values()), default=0)

    def said(self) -> dict[str, str]:
        """Return what a commit says of it."""
        return {STREAMS: msgspec.json.encode(self.streams).decode()}


def progress_of(log: Log | None, landed: Landed) -> Progress:
    """Return what the newest commit says; if none does, as much as the rows do."""
    if log is None:
        return Progress()
    said = log.said(STREAMS)
    if said is None:
        return Progress(log.batch(WRITER), _of_rows(log, landed))
    return Progress(log.batch(WRITER), msgspec.json.decode(said, type=dict[str, StreamProgress]))


def _of_rows(log: Log, landed: Landed) -> dict[str, StreamProgress]:
    """Of each namespace, the entry with the greatest id of its newest batch is the last one."""
    wanted = ("namespace", "batch", "id_ms", "id_n", "inc", "seq", "rejected")
    tables = []
    for file in log.files():
        with log.place.open(file.path) as opened:
            tables.append(pq.read_table(opened, columns=wanted))  # those that there are
    if not tables:
        return {}
    rows = pa.concat_tables(tables)
    order = [(name, "ascending") for name in ("batch", "id_ms", "id_n") if name in rows.column_names]
    rows = rows.sort_by(order)
    of_columns = [(name, of) for name in rows.column_names[1:] for of in ("last", "count")]
    last = rows.group_by("namespace", use_threads=False).aggregate(of_columns)
    return {
        landed.stream(row["namespace"]): StreamProgress(
            row["namespace"],
            str(Id(row["id_ms_last"], row["id_n_last"])),
            row.get("inc_last"),
            row.get("seq_last"),
            as_of_ms=row["id_ms_last"],
            entries=row["id_ms_count"],
            rejected=row.get("rejected_count", 0),
        )
        for row in last.to_pylist()
    }
