"""A landing in a process of its own: python -m tests.mqpipeline.landing.follow URL ROOT

It follows the stream in small batches without a pause until it is killed."""

import sys

from pyspark.sql import SparkSession

from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.session import spark_session
from tests.mqpipeline.conftest import SMALL


def landing_of(spark: SparkSession, url: str, root: str) -> Landing:
    """Return the landing that the killed process and its successor have in common."""
    source = {"url": url, "maxEntriesPerBatch": "50"}
    return Landing(spark, root, EVENTS_LAND, source, consumer="pipeline:main")


if __name__ == "__main__":
    spark = spark_session("follow", SMALL)
    landing = landing_of(spark, *sys.argv[1:])
    while True:
        landing.land_available()
