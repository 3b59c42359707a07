"""The files of a table against its log: what each is to be, and is not."""

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from mqpipeline.lake.log import File, Log
from mqpipeline.lake.log_files import LogFiles
from mqpipeline.lake.maintenance import RETAIN_S
from mqpipeline.lake.place import Place, is_data

MOST: Final = 10
"""Findings of one kind that get a line each."""


class Checked(NamedTuple):
    """Of a table: what is wrong, and what is only good to know, a line each; `rows` are columns of all its files that
    can be read, None if there are none."""

    findings: list[str]
    remarks: list[str]
    rows: pa.Table | None = None

    def and_also(self, other: "Checked") -> "Checked":
        """Return both; the rows are the first one's."""
        return Checked(self.findings + other.findings, self.remarks + other.remarks, self.rows)


def check_log(name: str, log: LogFiles) -> list[str]:
    """Return what is damaged of the files of a table's log."""
    return [
        f"{name}: {path} is damaged, or follows on a damaged log entry: mqpipeline repair"
        for path in log.aside
    ]


def check_files(log: Log, columns: Sequence[str]) -> Checked:
    """Read all files of a table, and return these columns of them."""
    name, stored = log.table.name, log.place.stored()
    findings, tables = [], []
    files = log.files()
    for file in files:
        there = stored.get(file.path)
        if there is None:
            findings.append(f"{name}: {file.path} is in the log and not there")
        elif there.size != file.size:
            findings.append(f"{name}: {file.path} has {there.size:,} bytes, and {file.size:,} in the log")
        else:
            problem, rows = _read(log.place, file, columns)
            findings += [f"{name}: {file.path} {problem}"] if problem else []
            tables += [] if rows is None else [rows]
    in_log = {file.path for file in files}
    since = time.time() - RETAIN_S
    old = [
        path for path, of in stored.items() if is_data(path) and path not in in_log and of.written_s < since
    ]
    remarks = (
        [f"{name}: {len(old)} files are in no log and older than a week: mqpipeline vacuum"] if old else []
    )
    rows = pa.concat_tables(tables, promote_options="default") if tables else None
    return Checked(findings, remarks, rows)


def shortened(lines: Sequence[str], what: str) -> Iterator[str]:
    """The first ones, and how many more there are."""
    yield from lines[:MOST]
    if len(lines) > MOST:
        yield f"{what}: {len(lines) - MOST} more of these"


def _read(place: Place, file: File, columns: Sequence[str]) -> tuple[str | None, pa.Table | None]:
    """Return what is wrong with a file, and of one that can be read these of its columns that it has."""
    try:
        with place.open(file.path) as opened:
            rows = pq.ParquetFile(opened).read()
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read: {' '.join(str(error).split())}", None
    wanted = rows.select([column for column in columns if column in rows.column_names])
    if file.rows is not None and len(rows) != file.rows:
        return f"has {len(rows):,} rows, and {file.rows:,} in the log", wanted
    return None, wanted
