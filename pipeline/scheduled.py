"""The run that the name server's scheduler asks for, in a process that has Spark."""

import logging

from pyspark.sql import SparkSession

from pipeline.job import run as run_once
from pipeline.options import Options

QUEUE = "pipeline-runs"
log = logging.getLogger(__name__)

_chosen: tuple[SparkSession, Options] | None = None


def run_with(spark: SparkSession, options: Options) -> None:
    """With what this process runs."""
    global _chosen
    _chosen = spark, options


def run() -> dict[str, int]:
    """Land, build, serve; which run it was, and up to when. Called by RQ, by name."""
    if _chosen is None:
        raise RuntimeError("this process makes no runs: start it as `mqpipeline answer`")
    made = run_once(*_chosen, log.info)
    return {"run": made.run, "as_of_ms": made.as_of_ms}


def queue_name(namespace: str) -> str:
    """One Redis may serve several name servers."""
    return f"{QUEUE}:{namespace}"
