"""The landed tables of release 0.1: folders `day=<day>/batches=<first>-<last>`, and `_progress.json`, which says up to
which batch they count. One commit makes them a table: the files stay where they are."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import create_table_with_add_actions

from mqpipeline.lake.files import Written, schema_of, written_before
from mqpipeline.lake.log import OLD_POSITIONS, LakeError, Log, properties, settings
from mqpipeline.lake.place import Place
from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.progress import WRITER, Progress
from mqpipeline.texts import one_line

WHOLE: Final = "_SUCCESS"
DONE: Final = f"{OLD_POSITIONS}.migrated"


class Folder(NamedTuple):
    """Rows of one day of some batches."""

    day: str
    first: int
    last: int

    def within(self, other: "Folder") -> bool:
        """Whether another folder has all of its rows."""
        return self.day == other.day and other.first <= self.first and self.last <= other.last


def migrate(place: Place, landed: Landed) -> str:
    """Do it, or what a killed one left to do; return what was done. Raises LakeError if positions cannot be read."""
    if not place.has(OLD_POSITIONS):
        return "there is nothing to migrate"
    log = _log(place, landed) or _committed(place, landed)
    place.move(OLD_POSITIONS, DONE)
    files = len(log.files()) if log else 0
    return f"{files:,} files are the table now; {DONE} has the old positions"


def _log(place: Place, landed: Landed) -> Log | None:
    try:
        return Log(place, landed.table, DeltaTable(place.url))
    except TableNotFoundError:
        return None


def _committed(place: Place, landed: Landed) -> Log | None:
    """Return the log that was made, None if nothing has landed."""
    table = landed.table
    progress = _old_progress(place)
    paths = _usable(place, progress.batch)
    if not paths and progress.batch:
        raise LakeError(
            f"{place.name}/{OLD_POSITIONS} says that {progress.batch} batches have landed: no file is there"
        )
    if not paths:
        return None
    files = [_written(place, path, landed) for path in paths]
    create_table_with_add_actions(
        place.url,
        schema_of(place, paths, table),
        [file.action() for file in files],
        partition_by=[one.name for one in table.partitions],
        name=table.name,
        configuration=settings(table),
        commit_properties=properties(WRITER, progress.batch, progress.said()),
    )
    log = Log(place, table, DeltaTable(place.url))
    log.look()
    return log


def _written(place: Place, path: str, landed: Landed) -> Written:
    try:
        return written_before(place, path, landed.table)
    except (pa.ArrowException, OSError) as error:
        text = f"{place.name}/{path} cannot be read: {one_line(error)}. "
        raise LakeError(
            f"{text}Put back a copy of it, or move it away, which loses its entries, and run `mqpipeline migrate` again"
        ) from None


def _old_progress(place: Place) -> Progress:
    with place.open(OLD_POSITIONS) as opened:
        text = bytes(opened.read())
    try:
        return msgspec.json.decode(text, type=Progress)
    except msgspec.DecodeError as error:
        raise LakeError(
            f"{place.name}/{OLD_POSITIONS} cannot be read: {error}. Move it away and run `mqpipeline repair`, "
            "which makes a log of the files"
        ) from None


def _usable(place: Place, landed: int) -> list[str]:
    """Return the files that have each row of batches up to `landed` once."""
    files: dict[Folder, list[str]] = {}
    finished = set()
    for path in place.stored():
        folder, _, name = path.rpartition("/")
        if (of := _folder(folder)) is None:
            continue
        if name == WHOLE:
            finished.add(of)
        elif not name.startswith(("_", ".")):
            files.setdefault(of, []).append(path)
    counting = [of for of in files if of.last <= landed and (of.first == of.last or of in finished)]
    return [path for of in _widest(counting) for path in files[of]]


def _widest(folders: Iterable[Folder]) -> list[Folder]:
    """Less those within others. Folders of a day never overlap otherwise."""
    widest: list[Folder] = []
    for folder in sorted(folders, key=lambda one: (one.day, one.first, -one.last)):
        if not (widest and folder.within(widest[-1])):
            widest.append(folder)
    return widest


def _folder(path: str) -> Folder | None:
    day, _, batches = path.partition("/")
    first, _, last = batches.removeprefix("batches=").partition("-")
    if not (day.startswith("day=") and first.isdecimal() and last.isdecimal()):
        return None
    return Folder(day.removeprefix("day="), int(first), int(last))
