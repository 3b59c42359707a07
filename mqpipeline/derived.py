"""Care of the derived tables: they can be computed again from what has landed, so what is damaged is set aside."""

import time
from typing import Final

from mqpipeline.lake.check import Checked, check_files
from mqpipeline.lake.log import LOG, LakeError
from mqpipeline.lake.log_files import ENTRY
from mqpipeline.lake.place import Place
from mqpipeline.schemas import Table
from mqpipeline.warehouse import DERIVED, OLD_SNAPSHOT, log_of, newest_snapshot

OLD: Final = "_release-0.1"
"""Under which folder `migrate` puts tables of that release."""


def check(root: Place) -> Checked:
    """Check the entries of each table's log, and the newest run's version of it against its files."""
    checked = Checked([line for table in DERIVED for line in _empty_entries(root, table)], [])
    try:
        snapshot = newest_snapshot(root)
    except LakeError as error:
        return checked.and_also(Checked([str(error)], []))
    for table in (table for table in DERIVED if table.name in snapshot.versions):
        try:
            checked = checked.and_also(check_files(log_of(root, table, snapshot), ()))
        except LakeError as error:
            checked = checked.and_also(Checked([str(error)], []))
    return checked


def _empty_entries(root: Place, table: Table) -> list[str]:
    """Return a line for each log entry of no bytes, which delta-rs takes for a commit that changed nothing."""
    stored = root.under(table.name).under(LOG).stored()
    return [
        f"{table.name}: {LOG}/{path} is empty. Run `mqpipeline repair`"
        for path, of in stored.items()
        if ENTRY.fullmatch(path) and not of.size
    ]


def set_aside(root: Place) -> str:
    """Move all derived tables to a folder of their own and return its name; killed in between, do it again."""
    folder = time.strftime("_derived-%Y%m%dT%H%M%SZ", time.gmtime())
    _move(root, folder)
    return folder


def migrate(root: Place) -> str:
    """Set the tables of release 0.1 aside, and return what was done."""
    if not root.has(OLD_SNAPSHOT):
        return "there is nothing to migrate"
    _move(root, OLD)
    root.move(OLD_SNAPSHOT, f"{OLD}/{OLD_SNAPSHOT}")
    return f"they are in {OLD}; the next run computes them again"


def _move(root: Place, folder: str) -> None:
    """The table of runs first: without it no table counts."""
    for table in DERIVED:
        root.move_folder(table.name, f"{folder}/{table.name}")
