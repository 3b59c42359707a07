"""The Spark session of every job."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.java import java_home

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.ui.showConsoleProgress": "false",
}
"""What every job relies on, whoever submits it."""


def spark_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session there is, or a new one; under `spark-submit` master and sizes are the submitter's.

    `settings` are Spark's own and win over ours."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    home = java_home(os.environ, Path(tempfile.gettempdir()) / f"redis-namesrv-{os.getuid()}")
    if home:
        os.environ["JAVA_HOME"] = home
    builder = SparkSession.builder.appName(name)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
