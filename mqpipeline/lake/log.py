"""The Delta log of one table: which files are the table, and who wrote which batch of them.

A commit says the number of its batch. One that does not follow on the last is refused: another process has written
meanwhile (Delta's protocol, Transaction Identifiers). No commit is tried again unless only files were rearranged."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Schema
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.lake.files import Written
from mqpipeline.lake.place import Place, is_data, sync
from mqpipeline.schemas import Table

LOG: Final = "_delta_log"
FILE_END: Final = ".parquet"
OLD_POSITIONS: Final = "_progress.json"
TRIES: Final = 5
SETTINGS: Final = {
    "delta.checkpointInterval": "100",  # commits; a checkpoint has all files, a reader wants one and what follows
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}


class LakeError(RuntimeError):
    """A table that cannot be read or written as it is; the text says what to do."""


class OtherWriter(LakeError):
    """Another process has written to the table since this one looked."""


class File(msgspec.Struct, frozen=True):
    """Of a table: its path under the table's place, what its folder says, bounds of its rows (None where unknown)."""

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, str | None]
    least: Mapping[str, Any]
    most: Mapping[str, Any]


class Log:
    """Of a table that is there, as of one look at it."""

    def __init__(self, place: Place, table: Table, delta: DeltaTable) -> None:
        self.place = place
        self.table = table
        self._delta = delta

    @property
    def version(self) -> int:
        """How many commits there were, less one."""
        return int(self._delta.version())

    @property
    def delta(self) -> DeltaTable:
        """As delta-rs has it."""
        return self._delta

    def files(self) -> list[File]:
        """Return all files of the table."""
        return [_file(row) for row in pa.table(self._delta.get_add_actions(flatten=True)).to_pylist()]

    def batch(self, writer: str) -> int:
        """Return the number of the last batch that a writer of this name has committed, 0 before the first."""
        return int(self._delta.transaction_version(writer) or 0)

    def said(self, key: str) -> Any:
        """Return what the newest commit that says anything under this key says, None if none does that is still there.
        Raises LakeError if the log is damaged."""
        for version in range(self.version, -1, -1):  # delta-rs's history has commits after this version too
            try:
                with self.place.open(entry(version)) as opened:
                    lines = bytes(opened.read()).splitlines()
                commits = [msgspec.json.decode(line).get("commitInfo", {}) for line in lines]
            except FileNotFoundError:
                return None
            except ValueError as error:
                raise damaged(self.place, f"entry {version}: {error}") from None
            for commit in commits:
                if key in commit:
                    return commit[key]
        return None

    def commit(self, writer: str, batch: int, files: Sequence[Written], said: Mapping[str, str]) -> None:
        """Add the files as this batch, with what is `said`. On disk, or with the object store, when it returns.

        Raises OtherWriter if the batch before is not the last one in the log."""
        for _ in range(TRIES):
            if self.batch(writer) != batch - 1:
                raise OtherWriter(f"another process has written batch {batch} of {self.place.name}")
            try:
                self._add(writer, batch, files, said)
                break
            except CommitFailedError as error:
                failed = error
            finally:
                self.look()
        else:
            raise OtherWriter(f"other processes write to {self.place.name} all the time: {failed}")

    def add_columns(self) -> None:
        """Add those that a newer release has."""
        there = {field.name for field in self._delta.schema().fields}
        new = [field for field in _schema(self.table).fields if field.name not in there]
        if new:
            self._delta.alter.add_columns(new)
            self.look()

    def look(self) -> None:
        """Look again; what was committed until now stays committed, whatever happens to the machine."""
        self._delta.update_incremental()
        if self.place.folder is not None:
            newest = self.place.folder / entry(self.version)
            with newest.open("rb") as opened:
                os.fsync(opened.fileno())
            sync(newest.parent)

    def _add(self, writer: str, batch: int, files: Sequence[Written], said: Mapping[str, str]) -> None:
        self._delta.create_write_transaction(
            [file.action() for file in files],
            mode="append",
            schema=self._delta.schema(),
            partition_by=[partition.name for partition in self.table.partitions],
            commit_properties=properties(writer, batch, said),
        )


def properties(writer: str, batch: int, said: Mapping[str, str]) -> CommitProperties:
    """Return those of a commit that ends a batch."""
    return CommitProperties(
        custom_metadata=dict(said), max_commit_retries=0, app_transactions=[Transaction(writer, batch)]
    )


def entry(version: int) -> str:
    """Return the path of a log entry under the table's place."""
    return f"{LOG}/{version:020d}.json"


def damaged(place: Place, how: object) -> LakeError:
    """Return the error of a table whose log is."""
    return LakeError(f"the log of {place.name} is damaged: {how}. Run `mqpipeline repair`")


def opened(place: Place, table: Table) -> Log | None:
    """Return the log of a table, None where there is nothing yet. Raises LakeError where files are without one, where
    `mqpipeline migrate` has not ended, or where the log is damaged."""
    refuse_old(place)
    try:
        return Log(place, table, DeltaTable(place.url))
    except TableNotFoundError:
        _refuse_files_without_log(place)
        return None
    except DeltaError as error:
        raise damaged(place, " ".join(str(error).split())) from None


def refuse_old(place: Place) -> None:
    """Raise LakeError if a table is as release 0.1 wrote it, or its migration has not ended."""
    if place.has(OLD_POSITIONS):
        raise LakeError(
            f"{place.name} is as release 0.1 wrote it. Run `mqpipeline migrate`, which rewrites no rows"
        )


def created(place: Place, table: Table) -> Log:
    """Return the log of a table, which is there after that. Raises as `opened` does."""
    log = opened(place, table)
    if log is not None:
        log.add_columns()
        return log
    DeltaTable.create(
        place.url,
        schema=_schema(table),
        mode="ignore",
        partition_by=[partition.name for partition in table.partitions],
        name=table.name,
        configuration=settings(table),
    )
    log = opened(place, table)
    assert log is not None
    return log


def settings(table: Table) -> dict[str, str | None]:
    """Return what Delta calls the configuration of a new table."""
    return {**SETTINGS, "delta.dataSkippingStatsColumns": ",".join(table.indexed)}


def _schema(table: Table) -> Schema:
    return Schema.from_arrow(to_arrow_schema(table.stored_schema, timezone="UTC"))


def _refuse_files_without_log(place: Place) -> None:
    """Raise LakeError if there are: a table without a log is not an empty one."""
    if any(map(is_data, place.stored())):
        raise LakeError(
            f"{place.name} has files and no log. Run `mqpipeline repair`, which makes one of them"
        )


def _file(row: Mapping[str, Any]) -> File:
    def of(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}

    return File(row["path"], row["size_bytes"], row["num_records"], of("partition."), of("min."), of("max."))
