"""A landing in a process of its own, small batches without a pause: python -m tests.pipeline.landing.follow URL ROOT"""

import sys

from pipeline.landing.kinds import EVENTS_LAND
from pipeline.landing.landing import Landing
from pipeline.session import spark_session
from tests.pipeline.conftest import SMALL

if __name__ == "__main__":
    url, root = sys.argv[1:]
    source = {"url": url, "maxEntriesPerBatch": "50"}
    landing = Landing(spark_session("follow", SMALL), root, EVENTS_LAND, source, consumer="pipeline:main")
    while True:
        landing.land_available()
