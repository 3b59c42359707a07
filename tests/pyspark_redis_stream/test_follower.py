"""Following streams: limits, ends, what is lost, what is acknowledged to the store."""

import json
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from pyspark_redis_stream.ids import Id
from tests.pyspark_redis_stream.reading import Query, ids


def add(redis: Redis, *entry_ids: str, stream: str = "a", **fields: Any) -> None:
    for entry_id in entry_ids:
        reported: Any = {"x": entry_id, **fields}
        redis.xadd(stream, reported, id=entry_id)


@pytest.fixture
def options(store: EmbeddedStore) -> dict[str, str]:
    return {"url": store.url, "streams": "a"}


def test_each_entry_comes_once(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "1-1")
    query = Query(options)
    assert ids(query.batch()) == ["1-0", "1-1"]
    before = json.dumps(query.at)
    assert query.batch() == []
    assert json.dumps(query.at) == before  # else Spark would run a batch for nothing
    add(redis, "1-2", "9-0")
    assert ids(query.batch()) == ["1-2", "9-0"]


def test_it_goes_on_where_a_checkpoint_says(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "2-0")
    first = Query(options)
    first.batch()
    add(redis, "3-0")
    assert ids(Query(options, json.loads(json.dumps(first.at))).batch()) == ["3-0"]


@pytest.mark.parametrize(
    ("bounds", "found"),
    [({"from": "2"}, ["2-0", "3-0"]), ({"after": '{"a": "2-0"}'}, ["3-0"]), ({"to": "2"}, ["1-0", "2-0"])],
)
def test_where_a_new_query_begins_and_ends(
    redis: Redis, options: dict[str, str], bounds: dict[str, str], found: list[str]
) -> None:
    add(redis, "1-0", "2-0", "3-0")
    assert ids(Query({**options, **bounds}).batch()) == found


@pytest.mark.parametrize("counter", [{}, {"counter": "seq"}], ids=["walked", "counted"])
def test_a_batch_is_no_larger_than_its_limit(
    redis: Redis, options: dict[str, str], counter: dict[str, str]
) -> None:
    for n in range(1, 11):
        add(redis, f"{n // 3}-{n}", seq=n)
    query = Query({**options, **counter, "maxEntriesPerBatch": "4", "page": "3"})
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(4)
    sizes = [len(query.batch(ReadMaxRows(4))) for _ in range(4)]
    assert sizes == [4, 4, 2, 0]


def test_a_limit_is_balanced_and_no_stream_starves(redis: Redis, options: dict[str, str]) -> None:
    for stream in "abc":
        for n in range(1, 5):
            add(redis, f"{n}-0", stream=stream)
    query = Query({**options, "streams": "a,b,c"})
    seen: list[tuple[str, int]] = []
    for limit in (2, 2, 2, 3, 3):
        batch = query.batch(ReadMaxRows(limit))
        assert len(batch) <= limit
        seen += [(row["stream"], row["id_ms"]) for row in batch]
    assert len(seen) == len(set(seen)) == 12


def test_a_busy_stream_does_not_starve_another(redis: Redis, options: dict[str, str]) -> None:
    query = Query({**options, "streams": "a,b"})
    seen = []
    for ms in range(1, 4):
        add(redis, f"{ms}-0", stream="a")
        add(redis, f"{ms}-0", stream="b")
        seen += [row["stream"] for row in query.batch(ReadMaxRows(1))]
    assert set(seen) == {"a", "b"}


def test_all_means_all_whatever_the_option_says(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "2-0", "3-0")
    assert len(Query({**options, "maxEntriesPerBatch": "1"}).batch(ReadAllAvailable())) == 3


def test_a_limit_it_cannot_keep_is_refused(redis: Redis, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="rows only"):
        Query(options).batch(ReadMinRows(5))


def test_available_now_ends_at_what_was_there(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "2-0")
    query = Query(options)
    query.reader.prepareForTriggerAvailableNow()
    add(redis, "3-0")
    assert ids(query.batch(ReadMaxRows(1))) == ["1-0"]
    assert ids(query.batch()) == ["2-0"]
    assert query.batch() == []


def test_a_stream_that_appears_is_read_from_its_beginning(redis: Redis, store: EmbeddedStore) -> None:
    query = Query({"url": store.url, "pattern": "a*", "discoverSeconds": "0"})
    assert query.batch() == []
    add(redis, "1-0", stream="a1")
    assert ids(query.batch()) == ["1-0"]
    add(redis, "1-0", stream="a2")
    assert [row["stream"] for row in query.batch()] == ["a2"]


def lost(redis: Redis, *kept: str) -> None:
    """As after a failover to a replica that had only these."""
    redis.delete("a")
    add(redis, *kept)


def test_where_a_primary_was_lost_reading_starts_over(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "2-0", "3-0")
    query = Query(options)
    query.batch()
    lost(redis, "1-0", "2-0")
    assert ids(query.batch()) == ["1-0", "2-0"]
    assert query.batch() == []
    add(redis, "4-0")
    assert ids(query.batch()) == ["4-0"]


def test_starting_over_keeps_to_limits_and_ends(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "2-0", "3-0")
    query = Query(options)
    query.batch()
    lost(redis, "1-0", "2-0", "5-0")
    query.reader.prepareForTriggerAvailableNow()
    assert [ids(query.batch(ReadMaxRows(2))) for _ in range(3)] == [["1-0", "2-0"], ["5-0"], []]


def test_starting_over_again_and_again(redis: Redis, options: dict[str, str]) -> None:
    query = Query(options)
    for newest in ("9-0", "8-0", "7-0"):
        lost(redis, "1-0", newest)
        assert ids(query.batch()) == ["1-0", newest]


def test_a_batch_that_started_over_can_be_read_again(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "3-0")
    query = Query(options)
    query.batch()
    lost(redis, "1-0", "2-0")
    end = query.reader.latestOffset(query.at, ReadAllAvailable())
    partitions = Query(options, query.at).reader.partitions(query.at, end)
    assert [partition.value for partition in partitions] == [("a", Id(0, 1), Id(2))]


def test_what_is_lost_can_be_left_alone(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "3-0")
    query = Query({**options, "lost": "ignore"})
    query.batch()
    lost(redis, "1-0", "2-0")
    assert query.batch() == []
    redis.xadd("a", {"x": 1}, id="2-1")  # before what we had read
    assert ids(query.batch()) == ["2-1"]


@pytest.mark.parametrize("gone", ["trimmed", "deleted", "flushed"])
def test_what_was_trimmed_is_skipped(redis: Redis, options: dict[str, str], gone: str) -> None:
    add(redis, "1-0", "2-0")
    query = Query(options)
    query.batch()
    if gone == "trimmed":
        add(redis, "3-0", "4-0")
        redis.xtrim("a", minid="4-0", approximate=False)
    else:
        redis.flushall() if gone == "flushed" else redis.delete("a")
        assert query.batch() == []
        add(redis, "4-0")
    assert ids(query.batch()) == ["4-0"]


def reported(redis: Redis, stream: str = "a") -> dict[str, Any]:
    return json.loads(redis.hget(f"{stream}:consumers", "me") or "{}")  # type: ignore[no-any-return]


def test_the_position_is_acknowledged_before_the_first_read_and_after_each_batch(
    redis: Redis, options: dict[str, str]
) -> None:
    add(redis, "1-0", "2-0", seq=7)
    query = Query({**options, "consumer": "me"})
    query.batch()
    assert {**reported(redis), "at_ms": 0} == {"id": "0-0", "seq": 0, "at_ms": 0, "hold": 1}
    assert abs(reported(redis)["at_ms"] - float(".".join(map(str, redis.time()))) * 1000) < 60_000
    assert query.batch() == []  # Spark asks for an end once it is done with a batch, the last one too
    assert {**reported(redis), "at_ms": 0} == {"id": "2-0", "seq": 7, "at_ms": 0, "hold": 1}


def test_a_query_that_goes_on_lets_nothing_go_first(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0", "2-0")
    query = Query({**options, "consumer": "me"})
    query.batch()
    again = Query({**options, "consumer": "me"}, query.at)
    again.reader.commit(query.at)
    assert reported(redis)["id"] == "2-0"
    again.batch()
    assert reported(redis)["id"] == "2-0"
    Query({**options, "consumer": "me"}).batch()  # begins from scratch, without a checkpoint
    assert reported(redis)["id"] == "0-0"


@pytest.mark.parametrize(
    ("parts", "end"), [(["1/1"], "1-1"), (["1/3", "2/3"], "1-0"), (["1/2", "2/2"], "1-2")]
)
def test_the_end_of_a_group_is_acknowledged(
    redis: Redis, options: dict[str, str], parts: list[str], end: str
) -> None:
    add(redis, "1-0")
    for n, part in enumerate(parts):
        add(redis, f"1-{n + 1}", part=part)
    query = Query({**options, "consumer": "me", "consumerKey": "{stream}:consumers"})
    query.batch()
    query.batch()
    assert reported(redis)["id"] == end


def test_an_entry_that_is_gone_is_not_acknowledged(redis: Redis, options: dict[str, str]) -> None:
    add(redis, "1-0")
    query = Query({**options, "consumer": "me"})
    query.batch()
    query.batch()
    add(redis, "2-0")
    query.batch()
    redis.xdel("a", "2-0")
    query.reader.commit(query.at)
    assert reported(redis)["id"] == "1-0"
