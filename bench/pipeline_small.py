"""What runs over a short history take: a first one, and further ones behind which nothing has come.

`python -m mqnamesrv.throwaway python -m bench.pipeline_small [--runs N] [--lasting]` writes the history of `mqpipeline
sample`, and prints of each run the jobs of Spark, the time, the time of processors that Java and its Python workers
took, and the memory of Java. The session is that of `mqpipeline run`, or with `--lasting` that of `mqpipeline stream`.
"""

import argparse
import os
import tempfile

from pyspark.sql import SparkSession

from bench.spark_clock import Clock
from mqpipeline import job, lean
from mqpipeline.cli.sample import sample
from mqpipeline.options import Options
from mqpipeline.session import spark_session

NAMESPACE = "sample"


def run(spark: SparkSession, options: Options) -> int:
    """Land, compute and publish; return how many jobs of Spark that took."""
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = {*jobs()}
    with job.leased(options) as leases:
        job.run(spark, options, lambda _: None, leases)
    return len({*jobs()} - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--lasting", action="store_true")
    given = parser.parse_args()
    sample(os.environ["REDIS_URL"], NAMESPACE)
    with tempfile.TemporaryDirectory(prefix="pipeline-small-") as folder:
        options = Options(url=os.environ["REDIS_URL"], namespaces=(NAMESPACE,), warehouse=folder)
        spark = spark_session("bench", own={} if given.lasting else lean.settings(options))
        clock = Clock(spark)
        for number in range(given.runs):
            jobs = run(spark, options)
            clock.print_step(f"run {number + 1}, {jobs} jobs")
        spark.stop()


if __name__ == "__main__":
    main()
