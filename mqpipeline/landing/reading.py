"""What has landed, as tables, of which a reader may ask for a part."""

from math import inf
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.lake.log import File, opened
from mqpipeline.lake.place import place
from mqpipeline.lake.reading import rows_of
from mqpipeline.schemas import EVENTS, HEARTBEATS, Table


class Since(NamedTuple):
    """Rows of this time (ms) or later, or of batches after this one."""

    from_ms: float
    after_batch: float = inf


EVER: Final = Since(-inf)
NEVER: Final = Since(inf)


class LandedTable:
    """A landed table as it is now: what lands later is not seen. Raises LakeError if the table is damaged."""

    def __init__(self, spark: SparkSession, root: str, table: Table) -> None:
        self._spark = spark
        self._table = table
        self._place = place(root).under(table.name)
        log = opened(self._place, table)
        self._files = [] if log is None else log.files()
        self._frames: dict[tuple[str, ...], DataFrame] = {}

    def rows(self, since: Since = EVER) -> DataFrame:
        """Return all rows of the files that may have one of these."""
        wanted = self._wanted(since)
        paths = tuple(file.path for file in wanted)
        if paths not in self._frames:
            frame = rows_of(self._spark, self._place, self._table, wanted, partitions=False)
            self._frames[paths] = frame
        return self._frames[paths]

    def has_rows(self, since: Since = EVER) -> bool:
        """Return False only if no file has one of these."""
        return bool(self._wanted(since))

    def first_ms(self) -> int | None:
        """Return the time of the first row, None if there is none."""
        said = [file.least["id_ms"] for file in self._files if file.least.get("id_ms") is not None]
        if len(said) == len(self._files):
            return min(said, default=None)
        earliest: int | None = self.rows().agg(F.min("id_ms")).collect()[0][0]
        return earliest

    def _wanted(self, since: Since) -> list[File]:
        return [] if since is NEVER else [file for file in self._files if _may_have(file, since)]


def events(spark: SparkSession, root: str) -> LandedTable:
    """EVENTS, each batch whole or not at all."""
    return LandedTable(spark, root, EVENTS)


def heartbeats(spark: SparkSession, root: str) -> LandedTable:
    """HEARTBEATS. A heartbeat is there twice if it was read again after a primary was lost."""
    return LandedTable(spark, root, HEARTBEATS)


def read_events(spark: SparkSession, root: str) -> DataFrame:
    """All of EVENTS."""
    return events(spark, root).rows()


def _may_have(file: File, since: Since) -> bool:
    return _most(file, "id_ms") >= since.from_ms or _most(file, "batch") > since.after_batch


def _most(file: File, column: str) -> float:
    """Return a column's greatest value in a file; infinity if the log does not say it."""
    most = file.most.get(column)
    return inf if most is None else most
