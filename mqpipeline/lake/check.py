"""The files of a table against its log: what each is to be, and is not."""

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from mqpipeline.lake.log import LANDED, File, Log
from mqpipeline.lake.log_files import LogFiles
from mqpipeline.lake.place import is_data
from mqpipeline.lake.statistics import Statistics
from mqpipeline.schemas import Table
from mqpipeline.texts import one_line

MOST: Final = 10
"""Findings of one kind that get a line each."""


class Checked(NamedTuple):
    """What a table's check says: what is wrong, and what is only good to know, a line each; `rows` are columns of all
    its files that can be read, None if there are none."""

    findings: list[str]
    remarks: list[str]
    rows: pa.Table | None = None

    def and_also(self, other: "Checked") -> "Checked":
        """Return both; the rows are the first one's."""
        return Checked(self.findings + other.findings, self.remarks + other.remarks, self.rows)


class _Read(NamedTuple):
    """A file as it was read: columns of its rows, None if it cannot be read; what is wrong; what is good to know."""

    rows: pa.Table | None
    finding: str | None
    remark: str | None = None


def check_log(name: str, log: LogFiles) -> list[str]:
    """Return what is damaged of the files of a table's log."""
    return [
        f"{name}: {path} is damaged, or follows on a damaged log entry: mqpipeline repair"
        for path in log.aside
    ]


def check_files(log: Log, columns: Sequence[str]) -> Checked:
    """Read all files of a table, and return these columns of them."""
    name, stored = log.table.name, log.place.stored()
    findings: list[str] = []
    remarks: list[str] = []
    tables: list[pa.Table] = []
    files = log.files()
    for file in files:
        there = stored.get(file.path)
        if there is None:
            findings.append(f"{name}: {file.path} is in the log and not there")
        elif there.size != file.size:
            findings.append(f"{name}: {file.path} has {there.size:,} bytes, and {file.size:,} in the log")
        else:
            read = _read(log, file, columns)
            findings += [f"{name}: {file.path} {read.finding}"] if read.finding else []
            remarks += [f"{name}: {file.path} {read.remark}"] if read.remark else []
            tables += [] if read.rows is None else [read.rows]
    in_log = {file.path for file in files}
    since = time.time() - LANDED.files * 3600
    old = [
        path for path, of in stored.items() if is_data(path) and path not in in_log and of.written_s < since
    ]
    if old:
        remarks.append(
            f"{name}: {len(old)} files are in no log and older than a week; the next vacuum deletes them"
        )
    rows = pa.concat_tables(tables, promote_options="default") if tables else None
    return Checked(findings, remarks, rows)


def shortened(lines: Sequence[str], what: str) -> Iterator[str]:
    """The first ones, and how many more there are."""
    yield from lines[:MOST]
    if len(lines) > MOST:
        yield f"{what}: {len(lines) - MOST} more of these"


def _read(log: Log, file: File, columns: Sequence[str]) -> _Read:
    """Read all of a file, and return these of its columns that it has."""
    try:
        with log.place.open(file.path) as opened:
            rows = pq.ParquetFile(opened).read()
    except (pa.ArrowException, OSError) as error:
        return _Read(None, f"cannot be read: {one_line(error)}")
    try:
        rows.validate(full=True)
        remark = None
    except pa.ArrowInvalid:  # release 0.1 wrote such text
        remark = "has text that is not UTF-8: this pipeline reads it, others may not"
    wanted = rows.select([column for column in columns if column in rows.column_names])
    if file.rows is not None and len(rows) != file.rows:
        finding = f"has {len(rows):,} rows, and {file.rows:,} in the log: mqpipeline repair"
    elif remark is None and not _agrees(log.table, file, rows):
        finding = "has other rows than the log says, so readers may leave it out: mqpipeline repair"
    else:
        finding = None
    return _Read(wanted, finding, remark)


def _agrees(table: Table, file: File, rows: pa.Table) -> bool:
    statistics = Statistics([name for name in table.bounded if name in rows.column_names])
    statistics.add(rows)
    return statistics.agree(file.rows, file.least, file.most)
