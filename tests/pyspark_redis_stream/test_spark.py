"""The format as Spark sees it: what a user writes."""

import io
from contextlib import redirect_stdout
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from redis import Redis

from mqnamesrv.store import EmbeddedStore


def test_reading_once(spark: SparkSession, redis: Redis, store: EmbeddedStore) -> None:
    redis.xadd("a", {"kind": "x", "n": 5}, id="1-0")
    redis.xadd("a", {b"kind": b"\xff\x00", "n": "none"}, id="1-1")
    reader = spark.read.format("redis_stream").options(url=store.url, streams="a", password="")
    whole = reader.option("partitions", 2).load()
    assert [tuple(row) for row in whole.where("id_n = 0").collect()] == [("a", 1, 0, {"kind": "x", "n": "5"})]
    typed = reader.schema("id_n bigint, kind string, n int").load()
    found = typed.selectExpr("id_n", "hex(cast(kind as binary))", "n").collect()
    assert sorted(tuple(row) for row in found) == [(0, "78", 5), (1, "FF00", None)]
    assert reader.option("from", "9").load().collect() == []


def test_bounds_of_a_query_are_those_of_what_redis_is_asked(
    spark: SparkSession, redis: Redis, store: EmbeddedStore
) -> None:
    for ms in range(1, 2001):
        redis.xadd("a", {"n": ms}, id=f"{ms}-0")
    wanted = spark.read.format("redis_stream").options(url=store.url, streams="a", page="10")
    redis.config_resetstat()
    assert _between(wanted) == [1900, 1901]
    everything = redis.info("commandstats")["cmdstat_xrange"]["calls"]
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        redis.config_resetstat()
        assert _between(wanted.option("pushFilters", "true")) == [1900, 1901]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert redis.info("commandstats")["cmdstat_xrange"]["calls"] < 10 < everything


def _between(reader: DataFrameReader) -> list[int]:
    rows = reader.load().where("id_ms >= 1900 and id_ms < 1902").orderBy("id_ms")
    return [row["id_ms"] for row in rows.collect()]


def test_no_secret_in_a_plan(spark: SparkSession, redis: Redis, store: EmbeddedStore) -> None:
    options = {
        "url": f"{store.url}?client_name=secret1",
        "streams": "a",
        "username": "default",
        "password": "secret2",
    }
    reported = io.StringIO()
    with redirect_stdout(reported):
        read = spark.read.format("redis_stream").options(**options)
        frame = read.schema("id_ms bigint").load()
        frame.explain("extended")
        print(frame._jdf.queryExecution().toString())
    assert "redis_stream" in reported.getvalue()
    assert "secret" not in reported.getvalue()


def test_following_with_a_limit_until_all_is_read(
    spark: SparkSession, redis: Redis, store: EmbeddedStore, tmp_path: Path
) -> None:
    batches: list[list[int]] = []

    def note(rows: DataFrame, _: int) -> None:
        batches.append(sorted(row["id_ms"] for row in rows.collect()))

    def follow() -> None:
        options = {"url": store.url, "streams": "a", "maxEntriesPerBatch": "2", "consumer": "me"}
        rows = spark.readStream.format("redis_stream").options(**options).load()
        writer = rows.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path))
        writer.trigger(availableNow=True).start().awaitTermination()

    for ms in range(1, 6):
        redis.xadd("a", {"x": ms}, id=f"{ms}-0")
    follow()
    assert batches == [[1, 2], [3, 4], [5]]
    assert '"id":"5-0"' in str(redis.hget("a:consumers", "me"))  # the last batch is acknowledged too
    redis.xadd("a", {"x": 6}, id="6-0")
    follow()
    assert batches[3:] == [[6]]
