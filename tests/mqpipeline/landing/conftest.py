"""Landings of a test, closed after it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqnamesrv.store import EmbeddedStore
from mqpipeline.landing.kinds import EVENTS_LAND, Landed
from mqpipeline.landing.landing import Landing

Make = Callable[..., Landing]


@pytest.fixture
def make(spark: SparkSession, store: EmbeddedStore, tmp_path: Path) -> Iterator[Make]:
    landings: list[Landing] = []

    def landing(
        landed: Landed = EVENTS_LAND, namespaces: tuple[str, ...] = ("default",), **source: str
    ) -> Landing:
        landings.append(
            Landing(spark, str(tmp_path), landed, {"url": store.url, **source}, namespaces, "pipeline:main")
        )
        return landings[-1]

    yield landing
    for landing_of_test in landings:
        landing_of_test.close()
