"""The rows of a table's files: read here where they are few, by tasks of Spark where they are many."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqpipeline.lake import reading
from mqpipeline.lake.files import Written
from mqpipeline.lake.log import LakeError
from mqpipeline.lake.place import Place, place
from mqpipeline.lake.writing import plan, with_partitions
from mqpipeline.lake.writing import written as files_of
from mqpipeline.schemas import BROKER_SESSIONS, EVENTS, ROUTE_VERSIONS, Table
from tests.mqpipeline import worked_example
from tests.mqpipeline.rows import Literal, frame, rows_of
from tests.mqpipeline.stream import at

ID = {"ms": at(0), "n": 1}
ROWS: dict[Table, Sequence[Literal]] = {
    EVENTS: worked_example.ROWS,
    BROKER_SESSIONS: [
        {"broker": "a", "end_ms": at(60), "start_id": ID, "open": False},
        {"broker": "größe-库"},
    ],
    ROUTE_VERSIONS: [
        {"topic": f"T{number}", "from_ms": at(number), "to_ms": at(90 * 86_400) if number % 2 else None}
        for number in range(10)
    ],
}


@pytest.fixture
def lake(tmp_path: Path) -> Place:
    return place(str(tmp_path))


def written(spark: SparkSession, lake: Place, table: Table) -> list[Written]:
    (files,) = files_of([plan(with_partitions(frame(spark, table, ROWS[table]), table), table, lake)])
    return files


@pytest.mark.parametrize("table", ROWS, ids=lambda table: table.name)
@pytest.mark.parametrize("partitions", [True, False], ids=["with partitions", "without"])
def test_both_ways_are_the_same(
    spark: SparkSession, lake: Place, monkeypatch: pytest.MonkeyPatch, table: Table, partitions: bool
) -> None:
    files = written(spark, lake, table)
    here = reading.rows_of(spark, lake, table, files, partitions=partitions)
    monkeypatch.setattr(reading, "FILES_MOST", 0)
    by_tasks = reading.rows_of(spark, lake, table, files, partitions=partitions)
    assert (here.inputFiles(), len(by_tasks.inputFiles())) == ([], len(files))
    assert here.schema == by_tasks.schema
    found = rows_of(here, *here.columns)
    assert len(found) == len(ROWS[table])
    assert found == rows_of(by_tasks, *by_tasks.columns)


@pytest.mark.parametrize("name", ["FILES_MOST", "BYTES_MOST", "HELD_MOST"])
def test_more_are_read_by_tasks(
    spark: SparkSession, lake: Place, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = written(spark, lake, EVENTS)
    monkeypatch.setattr(reading, name, 0)
    assert len(reading.rows_of(spark, lake, EVENTS, files).inputFiles()) == len(files)


def test_a_column_that_older_files_lack_is_null(spark: SparkSession, lake: Place) -> None:
    fields = BROKER_SESSIONS.schema.fields[:-1]
    older = BROKER_SESSIONS._replace(
        columns=", ".join(f"{of.name} {of.dataType.simpleString()}" for of in fields)
    )
    rows = with_partitions(frame(spark, older, [{"broker": "a"}]), BROKER_SESSIONS._replace(partitions=()))
    (files,) = files_of([plan(rows, older._replace(partitions=()), lake)])
    [row] = reading.rows_of(spark, lake, BROKER_SESSIONS, files, partitions=False).collect()
    assert (row["broker"], row[BROKER_SESSIONS.schema.names[-1]]) == ("a", None)


def test_a_file_that_is_not_there_is_said(spark: SparkSession, lake: Place) -> None:
    files = written(spark, lake, EVENTS)
    assert lake.folder is not None
    (lake.folder / files[0].path).unlink()
    with pytest.raises(LakeError, match=r"parquet is damaged: .* Run `mqpipeline repair`"):
        reading.rows_of(spark, lake, EVENTS, files)
