"""The Delta log of one table: which files are the table, and who wrote which batch of them.

A commit says the number of its batch. One that does not follow on the last is refused: another process has written
meanwhile (Delta's protocol, Transaction Identifiers). No commit is tried again unless only files were rearranged."""

import os
import socket
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, PostCommitHookProperties, RemoveAction
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.lake.files import Written, now_ms
from mqpipeline.lake.place import Place, is_data, sync
from mqpipeline.schemas import Table
from mqpipeline.texts import one_line

LOG: Final = "_delta_log"
OLD_POSITIONS: Final = "_progress.json"
RUN: Final = "run"
"""Under which a commit says the number of the run that replaced files."""
BY: Final = "by"
"""Under which a commit says which process made it."""
TRIES: Final = 5
CHECKPOINT_EVERY: Final = 100
"""Commits. A checkpoint has all files; readers take the newest and what follows. delta-rs by itself would look for
expired entries of the log after each commit, which takes longer than the commit."""


class Retention(NamedTuple):
    """For how many hours stays what is out of use: entries of the log before its newest checkpoint, and files."""

    entries: int
    files: int


LANDED: Final = Retention(6, 7 * 24)
"""A commit every few seconds: each looks at all entries that are there. Files are what a lost one is repaired from."""
DERIVED: Final = Retention(30 * 24, 24)
"""A commit a run. It replaces all that is open; a reader of the run before has done within a day."""


class LakeError(RuntimeError):
    """A table that cannot be read or written as it is; the text says what to do."""


class OtherWriter(LakeError):
    """Another process has written to the table since this one looked."""


class File(msgspec.Struct, frozen=True):
    """A file of a table: its path under the table's place, what its folder says, bounds of its rows (None where
    unknown)."""

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, str | None]
    least: Mapping[str, Any]
    most: Mapping[str, Any]

    def action(self) -> AddAction:
        """Return what a transaction that adds it again says."""
        bounds = {"numRecords": self.rows, "minValues": dict(self.least), "maxValues": dict(self.most)}
        said = msgspec.json.encode(bounds).decode()
        return AddAction(self.path, self.size, self.partition, now_ms(), True, said)

    def removal(self) -> RemoveAction:
        """Return what a transaction that removes it says."""
        return RemoveAction(self.path, True, now_ms(), self.size, dict(self.partition))


class Log:
    """The log of a table that is there, as of one look at it."""

    def __init__(self, place: Place, table: Table, delta: DeltaTable) -> None:
        self.place = place
        self.table = table
        self._delta = delta
        self._checkpointed = self.version // CHECKPOINT_EVERY

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
                raise OtherWriter(
                    f"another process has written batch {batch} of {self.place.name}: {self.said(BY)}. "
                    "End one of the two; the next start goes on"
                )
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

    def replace(self, run: int, files: Sequence[File | Written]) -> None:
        """Make these files the table, as a run's doing. Raises OtherWriter if another run does so meanwhile."""
        for _ in range(TRIES):
            seen, there = self.version, {file.path: file for file in self.files()}
            new = [file.action() for file in files if file.path not in there]
            out = [there[path].removal() for path in there.keys() - {file.path for file in files}]
            try:
                self._transact([*new, *out], CommitProperties({RUN: run, BY: this_process()}, 0))
                return
            except CommitFailedError as error:
                failed = error
            finally:
                self.look()
            if self.changed_since(seen):
                break
        raise OtherWriter(
            f"another run has written to {self.place.name}: {self.said(BY)}. Start this one again, or end one of them"
        ) from failed

    def changed_since(self, version: int) -> bool:
        """Whether a run has replaced files since; others only rearrange them."""
        since = self._delta.history(self.version - version) if self.version > version else []
        return any(RUN in commit for commit in since)

    def look(self) -> None:
        """Look again; what was committed until now stays so, whatever happens to the machine. Raises LakeError if the
        log is damaged."""
        try:
            self._delta.update_incremental()
        except DeltaError as error:
            raise damaged(self.place, error) from None
        if self.place.folder is not None:
            newest = self.place.folder / entry(self.version)
            with newest.open("rb") as opened:
                os.fsync(opened.fileno())
            sync(newest.parent)

    def refuse_empty_entry(self) -> None:
        """Raise LakeError if the newest entry is empty, which delta-rs takes for a commit that changed nothing."""
        newest = entry(self.version)
        if self.place.folder is not None and self.place.has(newest) and not self.place.size(newest):
            raise damaged(self.place, f"entry {self.version} is empty")

    def checkpoint(self) -> None:
        """Write one if it is time to, and delete entries that nothing needs."""
        due = self.version // CHECKPOINT_EVERY
        if due > self._checkpointed:
            self._delta.create_checkpoint()
            self._delta.cleanup_metadata()
            self._checkpointed = due

    def _add(self, writer: str, batch: int, files: Sequence[Written], said: Mapping[str, str]) -> None:
        self._transact([file.action() for file in files], properties(writer, batch, said))

    def _transact(self, actions: list[AddAction | RemoveAction], of_commit: CommitProperties) -> None:
        self._delta.create_write_transaction(
            actions,
            mode="append",
            schema=self._delta.schema(),
            partition_by=[partition.name for partition in self.table.partitions],
            commit_properties=of_commit,
            post_commithook_properties=PostCommitHookProperties(
                create_checkpoint=False, cleanup_expired_logs=False
            ),
        )


def properties(writer: str, batch: int, said: Mapping[str, str]) -> CommitProperties:
    """Return those of a commit that ends a batch."""
    return CommitProperties(
        custom_metadata={**said, BY: this_process()},
        max_commit_retries=0,
        app_transactions=[Transaction(writer, batch)],
    )


def this_process() -> str:
    """Return how a commit names this process; in Kubernetes its host is the pod."""
    return f"process {os.getpid()} of {socket.gethostname()}"


def entry(version: int) -> str:
    """Return the path of a log entry under the table's place."""
    return f"{LOG}/{version:020d}.json"


def damaged(place: Place, how: object) -> LakeError:
    """Return the error of a table whose log is."""
    return _damaged(f"the log of {place.name}", how)


def damaged_file(place: Place, path: str, how: object) -> LakeError:
    """Return the error of a table one of whose files is, or is not there."""
    return _damaged(f"{place.name}/{path}", how)


def _damaged(what: str, how: object) -> LakeError:
    cause = shorten(one_line(how), 300, placeholder=" …")  # delta-rs adds what it was at
    return LakeError(f"{what} is damaged: {cause}. Run `mqpipeline repair`")


def opened(place: Place, table: Table, version: int | None = None) -> Log | None:
    """Return the log of a table, as of a version or the newest; None where there is nothing yet. Raises LakeError where
    files are without one, where `mqpipeline migrate` has not ended, or where the log is damaged."""
    refuse_old(place)
    try:
        return Log(place, table, DeltaTable(place.url, version=version))
    except TableNotFoundError:
        if version is not None and place.under(LOG).stored():
            raise LakeError(f"version {version} of {place.name} is no longer in its log") from None
        _refuse_files_without_log(place)
        return None
    except DeltaError as error:
        raise damaged(place, error) from None


def refuse_old(place: Place) -> None:
    """Raise LakeError if a table is as release 0.1 wrote it, or its migration has not ended."""
    if place.has(OLD_POSITIONS):
        raise LakeError(
            f"{place.name} is as release 0.1 wrote it. Run `mqpipeline migrate`, which rewrites no rows"
        )


def created(place: Place, table: Table, retention: Retention = LANDED) -> Log:
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
        configuration=settings(table, retention),
    )
    log = opened(place, table)
    assert log is not None
    return log


def settings(table: Table, retention: Retention = LANDED) -> dict[str, str | None]:
    """Return what Delta calls the configuration of a new table."""
    return {
        "delta.logRetentionDuration": f"interval {retention.entries} hours",
        "delta.deletedFileRetentionDuration": f"interval {retention.files} hours",
        "delta.dataSkippingStatsColumns": ",".join(table.bounded),
    }


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

    partition = {name: None if value is None else str(value) for name, value in of("partition.").items()}
    return File(row["path"], row["size_bytes"], row["num_records"], partition, of("min."), of("max."))
