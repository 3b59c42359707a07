"""Where history is read from: the newest snapshot of a warehouse, known again as long as it is the newest."""

from typing import Final

from pyarrow.dataset import Dataset
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from mqpipeline.history.questions import Reading
from mqpipeline.history.tables import Tables
from mqpipeline.lake.place import Place
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS, Table
from mqpipeline.warehouse import Snapshot, log_of, newest_snapshot

TABLES: Final = (BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS)


class NothingLanded(Exception):
    """The warehouse has no tables yet, or none of that namespace."""


class Reader:
    """Listing a table's files takes longer than reading the few that an answer needs, so it is done once a snapshot."""

    def __init__(self, root: Place) -> None:
        self._root = root
        self._snapshot = Snapshot()
        self._datasets: list[Dataset | None] = []
        self._readings: dict[str, Reading] = {}

    def reading(self, namespace: str) -> Reading:
        """Return the newest tables of a namespace. Raises NothingLanded, and LakeError if they are damaged."""
        snapshot = newest_snapshot(self._root)
        if snapshot != self._snapshot:
            self._datasets = [self._dataset(table, snapshot) for table in TABLES]
            self._snapshot, self._readings = snapshot, {}
        if namespace not in self._readings:
            sessions, names, routes = self._datasets or (None, None, None)
            tables = Tables(namespace, sessions, names, routes)
            first_ms = tables.first_ms()
            if first_ms is None:
                others = ", ".join(sorted(snapshot.folded.keys() - {namespace}))
                raise NothingLanded(
                    f"{self._root.name} has nothing of namespace {namespace!r}: land it with `mqpipeline run`"
                    + (f", or name one that is there: {others}" if others else "")
                )
            until_ms = snapshot.earlier.get(namespace, snapshot.as_of_ms)
            self._readings[namespace] = Reading(tables, first_ms, until_ms)
        return self._readings[namespace]

    def _dataset(self, table: Table, snapshot: Snapshot) -> Dataset | None:
        if table.name not in snapshot.versions:
            return None
        log = log_of(self._root, table, snapshot)
        return log.delta.to_pyarrow_dataset(filesystem=_files_of(log.place))


def _files_of(place: Place) -> FileSystem | None:
    """Return pyarrow's own file system for a folder of this machine: a thread of its that is still in delta-rs's, which
    calls Python, when Python ends aborts the process."""
    return None if place.folder is None else SubTreeFileSystem(str(place.folder), LocalFileSystem())
