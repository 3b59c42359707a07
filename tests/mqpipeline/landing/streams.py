"""Entries of a name server's event stream, as many as a test wants."""

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from redis import Redis

from mqpipeline.landing.reading import read_events

DAY_MS = 86_400_000
INC = 20_454 * DAY_MS  # 2026-01-01
STREAM = "ns:{default}:events"


def emit(
    redis: Redis, first: int, last: int, *, namespace: str = "default", inc: int = INC, every_ms: int = 1
) -> None:
    """Entries `first` to `last` by seq; the id's ms is `inc` + seq * `every_ms`."""
    with redis.pipeline(transaction=False) as pipe:
        for seq in range(first, last + 1):
            fields: Any = {
                "v": 1,
                "kind": "kv_changed",
                "inc": inc,
                "seq": seq,
                "cause": "put",
                "key": "k",
            }
            pipe.xadd(f"ns:{{{namespace}}}:events", fields, id=f"{inc + seq * every_ms}-0")
        pipe.execute()


def landed(spark: SparkSession, root: Path) -> Counter[tuple[str, int, int, int]]:
    """(namespace, inc, seq, batch) -> how often it is there."""
    rows = read_events(spark, str(root)).select("namespace", "inc", "seq", "batch").collect()
    return Counter(tuple(row) for row in rows)


def seqs(first: int, last: int, batch: int, *, inc: int = INC) -> Counter[tuple[str, int, int, int]]:
    return Counter({("default", inc, seq, batch): 1 for seq in range(first, last + 1)})
