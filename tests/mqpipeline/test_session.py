from pathlib import Path

from pyspark.sql import SparkSession

from mqpipeline.java import java_home


def test_a_job_runs(spark: SparkSession) -> None:
    assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45


def test_times_are_utc(spark: SparkSession) -> None:
    reported = spark.sql("select date_format(timestamp_millis(0), 'yyyy-MM-dd HH')").collect()
    assert reported[0][0] == "1970-01-01 00"


def test_no_other_machine_reaches_a_session_of_this_one(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.driver.host") in ("127.0.0.1", "localhost")


def test_the_java_that_is_there_is_taken(tmp_path: Path) -> None:
    assert java_home({"JAVA_HOME": "/opt/java"}, tmp_path) is None
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert java_home({"PATH": str(tmp_path)}, tmp_path) is None
