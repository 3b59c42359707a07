"""The tables for people who analyse: as Arrow, pandas, Polars or Spark, all of one run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from mqpipeline.columns import columns, meaning
from mqpipeline.lake.log import LakeError, Log, opened
from mqpipeline.lake.place import Place, place
from mqpipeline.lake.reading import rows_of
from mqpipeline.schemas import EVENTS, HEARTBEATS, RUNS, Table
from mqpipeline.texts import one_line
from mqpipeline.warehouse import DERIVED, PART, Snapshot, log_of, newest_snapshot, snapshots

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

TABLES: Final = {table.name: table for table in (EVENTS, HEARTBEATS, *DERIVED)}


class Lake(msgspec.Struct, frozen=True):
    """A warehouse as one run left it. Each table is an attribute: `lake.report_availability.pandas()`; `dir(lake)` has
    their names. Landed tables and `runs` are the newest."""

    place: Place
    snapshot: Snapshot

    @property
    def run(self) -> int:
        """The number of the run, 0 before the first."""
        return self.snapshot.run

    @property
    def as_of(self) -> datetime:
        """Until when its reports go."""
        return datetime.fromtimestamp(self.snapshot.as_of_ms / 1000, UTC)

    def at(self, *, run: int) -> "Lake":
        """Return it as that run left it. Raises LakeError if it is not in `runs`. Files that later runs have replaced
        are there for a day; after that, reading a table raises."""
        for snapshot in snapshots(self.place):
            if snapshot.run == run:
                return Lake(self.place, snapshot)
        runs = ", ".join(str(snapshot.run) for snapshot in snapshots(self.place))
        raise LakeError(f"{self.place.name} has no run {run}; it has: {runs}")

    def __repr__(self) -> str:
        return f"<{self.place.name} as run {self.run} left it, up to {self.as_of:%Y-%m-%d %H:%M:%S} UTC>"

    def __getattr__(self, name: str) -> "TableOfLake":
        if name not in TABLES:
            raise AttributeError(f"{self.place.name} has no table {name!r}: {', '.join(sorted(TABLES))}")
        return TableOfLake(self.place, TABLES[name], self._log(TABLES[name]))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *TABLES})

    def _log(self, table: Table) -> Log | None:
        if table in (EVENTS, HEARTBEATS, RUNS):
            log = opened(self.place.under(table.name), table)
            if log is not None:
                log.refuse_empty_entry()
            return log
        return log_of(self.place, table, self.snapshot) if table.name in self.snapshot.versions else None


class TableOfLake:
    """A table's rows. `columns` are names, all by default."""

    def __init__(self, root: Place, table: Table, log: Log | None) -> None:
        self._root = root
        self._table = table
        self._log = log

    def __repr__(self) -> str:
        return f"<{self._table.name} of {self._root.name}: .pandas() .polars() .arrow() .spark() .columns>"

    @property
    def columns(self) -> dict[str, str]:
        """What each column means, by its name."""
        return {name: meaning(self._table.name, name) for name, _ in columns(self._table)}

    def arrow(self, columns: Sequence[str] = ()) -> pa.Table:
        """Return them as a pyarrow.Table. Raises LakeError if nothing has been written to the table yet, or a file of
        it is damaged or lost; ValueError for columns that it does not have."""
        if self._log is None:
            how = (
                "name servers write them with eventsHeartbeats"
                if self._table is HEARTBEATS
                else "`mqpipeline run`"
            )
            raise LakeError(f"{self._root.name} has no {self._table.name} yet: {how}")
        known = [field.name for field in self._log.delta.schema().fields if field.name != PART.name]
        if isinstance(columns, str) or not {*columns} <= {*known}:
            raise ValueError(f"{columns!r}: name a list of these: {', '.join(known)}")
        try:
            rows = self._log.delta.to_pyarrow_table(columns=[*columns] or None)
        except (pa.ArrowException, OSError) as error:
            raise LakeError(f"{self._table.name}: {one_line(error)}. Run `mqpipeline check`") from None
        return rows.drop_columns([PART.name]) if PART.name in rows.column_names and not columns else rows

    def pandas(self, columns: Sequence[str] = ()) -> "pd.DataFrame":
        """Return them as a pandas.DataFrame. Raises as `arrow` does."""
        frame: pd.DataFrame = self.arrow(columns).to_pandas()
        return frame

    def polars(self, columns: Sequence[str] = ()) -> Any:
        """Return them as a polars.DataFrame. Raises as `arrow` does, and LakeError if Polars is not installed."""
        try:
            import polars
        except ModuleNotFoundError:
            raise LakeError("Polars is not installed: `pip install polars`") from None
        return polars.from_arrow(self.arrow(columns))

    def spark(self, session: "SparkSession | None" = None) -> "DataFrame":
        """Return them as a DataFrame of this session, or of one of this machine."""
        from mqpipeline.session import spark_session

        files = [] if self._log is None else self._log.files()
        return rows_of(
            session or spark_session("mqpipeline"), self._root.under(self._table.name), self._table, files
        )


def open_lake(warehouse: str) -> Lake:
    """Return the warehouse as the newest run left it. Raises LakeError if it is damaged, or has no table."""
    root = place(str(warehouse))
    lake = Lake(root, newest_snapshot(root))
    if not lake.run and opened(root.under(EVENTS.name), EVENTS) is None:
        raise LakeError(f"{root.name} has no tables: see its path, or fill it with `mqpipeline run`")
    return lake
