"""A month in slices of half a day."""

from pyspark.sql import SparkSession

from pipeline.states.combined import combined
from pipeline.states.steady import thinned
from pipeline.windows import DAY_MS
from tests.pipeline.rows import rows_of

FROM = 1_767_225_600_000
TO = FROM + 30 * DAY_MS
TOPIC = ("namespace", "topic")
Pieces = list[tuple[str, str, float, float]]
"""Topic, state, and days since the beginning."""

PIECES: Pieces = [
    ("t", "UP", 0, 10.2),
    ("t", "DOWN", 10.2, 10.7),  # while another stays
    ("t", "UP", 10.7, 25.1),
    ("t", "DOWN", 25.1, 25.3),
    ("t", "UP", 25.3, 30),
    ("t", "UP", 8, 20),
    ("t", "DOWN", 20, 25.2),
    ("t", "UP", 25.2, 30),
    ("u", "DOWN", 0, 30),
    ("v", "UP", 3.1, 3.6),  # covers no slice
    ("w", "PLANNED", 0, 30),
    ("w", "UP", 3.1, 4.1),
]


def test_what_is_left(spark: SparkSession) -> None:
    rows = [
        ("n", topic, state, *(FROM + round(day * DAY_MS) for day in days)) for topic, state, *days in PIECES
    ]
    pieces = spark.createDataFrame(
        rows, "namespace string, topic string, state string, from_ms bigint, to_ms bigint"
    )
    left = thinned(pieces, TOPIC, FROM, TO).cache()
    told = {
        (topic, state, (a - FROM) / DAY_MS, (b - FROM) / DAY_MS)
        for topic, state, a, b in rows_of(left, *left.columns[1:])
    }
    assert told == {
        ("t", "UP", 0, 25),
        ("t", "UP", 25.5, 30),
        ("t", "UP", 10.7, 25.1),
        ("t", "DOWN", 25.1, 25.3),
        ("t", "UP", 25.3, 30),
        ("t", "DOWN", 20, 25.2),
        ("t", "UP", 25.2, 30),
        ("u", "DOWN", 0, 30),
        ("v", "UP", 3.1, 3.6),
        ("w", "UP", 3.5, 4),
        ("w", "PLANNED", 0, 30),
        ("w", "UP", 3.1, 4.1),
    }
    columns = (*TOPIC, "state", "from_ms", "to_ms")
    assert rows_of(combined(left, TOPIC), *columns) == rows_of(combined(pieces, TOPIC), *columns)
