"""Rows of several frames that one job of Spark collects."""

from pyspark.sql import SparkSession

from mqpipeline.lines import collected, rows


def test_rows_of_several_frames_are_as_spark_has_them(spark: SparkSession) -> None:
    values = """1L as whole, 9007199254740993L as large, 0.1d as part, 5d as even, cast(null as double) as nothing,
        'größe "库"' as text, true as yes, map('a', 1) as by_name, array(named_struct('ms', 1L, 'n', 2)) as ids"""
    one, none = spark.sql(f"select {values}"), spark.sql("select 1 as number where false")
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = {*jobs()}
    found = rows({"one": one, "none": none, "more": spark.range(2)})
    assert len({*jobs()} - before) == 1
    assert found["none"] == []
    assert sorted(row["id"] for row in found["more"]) == [0, 1]
    assert found["one"] == [one.collect()[0].asDict(recursive=True)]
    assert {name: type(value) for name, value in found["one"][0].items() if name in ("whole", "even")} == {
        "whole": int,
        "even": float,
    }


def test_nothing_is_asked_of_no_frames() -> None:
    assert list(collected({})) == []
