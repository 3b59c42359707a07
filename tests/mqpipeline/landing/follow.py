"""A landing in a process of its own: python -m tests.mqpipeline.landing.follow URL ROOT [rest]

It follows the stream in small batches without a pause, or lands the `rest` and prints every seq that there is then.
"""

import sys
from itertools import chain

from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.reading import read_events
from mqpipeline.session import spark_session
from tests.mqpipeline.conftest import SHORT_LIVED_JVM, SMALL

OPTIONS = "spark.driver.extraJavaOptions"

if __name__ == "__main__":
    url, root, *rest = sys.argv[1:]
    spark = spark_session("follow", {**SMALL, OPTIONS: f"{SMALL[OPTIONS]} {SHORT_LIVED_JVM}"})
    source = {"url": url, "maxEntriesPerBatch": "50"}
    landing = Landing(spark, root, EVENTS_LAND, source, consumer="pipeline:main")
    if rest:
        landing.land_available()
        landing.close()
        print(*chain(*read_events(spark, root).select("seq").toLocalIterator()))
    while not rest:
        landing.land_available()
