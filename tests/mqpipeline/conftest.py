"""One Spark session for all tests of the pipeline: a Java process starts once, and its code gets warm once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqpipeline.lake import reading
from mqpipeline.session import spark_session

QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1"
"""For Java: what is called some thousand times is not worth the best code, whose making takes a tenth of all time."""
SMALL = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Xmn800m -XX:MetaspaceSize=512m {QUICKLY_COMPILED}",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",  # compiling a plan takes longer than a few rows do
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",  # planning again after each step takes longer than the step
    "spark.log.level": "ERROR",
    "spark.sql.ui.retainedExecutions": "1",  # their plans fill the memory of a long session
}
PATIENCE_S = (
    900  # a plan of many steps takes seconds to make, and as many times that on a machine that is busy
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the pipeline may take longer than others."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


@pytest.fixture
def read_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is a small one."""
    monkeypatch.setattr(reading, "FILES_MOST", 0)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session of this machine, small and quick to start."""
    session = spark_session("tests", SMALL)
    yield session
    session.stop()
