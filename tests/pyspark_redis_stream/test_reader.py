"""Reading what is there: ranges, partitions, pages, patterns."""

import pickle

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from redis import Redis
from redis.exceptions import AuthenticationError, ConnectionError, ResponseError

from mqnamesrv.store import EmbeddedStore
from pyspark_redis_stream import replies
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.ids import Id
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.pages import pages
from pyspark_redis_stream.reader import SIGN, FilteringReader
from pyspark_redis_stream.replies import Page
from pyspark_redis_stream.streams import Streams
from testbed.eventually import eventually
from tests.pyspark_redis_stream.reading import IDS, TEXT, ids, read, rows, schema

SEVERAL = [{}, {"counter": "seq"}, {"partitions": "3"}, {"partitions": "3", "counter": "seq"}]


def filled(redis: Redis, stream: str, entries: int, size: int = 1) -> list[str]:
    """Entries 1-0, 1-1, 2-0, 2-1 … with a counter `seq`."""
    made = [f"{1 + n // 2}-{n % 2}" for n in range(entries)]
    with redis.pipeline(transaction=False) as pipe:
        for n, entry_id in enumerate(made):
            pipe.xadd(stream, {"seq": n + 1, "text": "x" * size}, id=entry_id)
        pipe.execute()
    return made


def calls(redis: Redis) -> int:
    """How often a range was asked for."""
    return int(redis.info("commandstats").get("cmdstat_xrange", {}).get("calls", 0))


@pytest.mark.parametrize(
    ("bounds", "first", "last"),
    [
        ({}, 0, 9),
        ({"from": "2-1"}, 3, 9),
        ({"from": "3"}, 4, 9),
        ({"to": "3"}, 0, 5),
        ({"to": "3-0"}, 0, 4),
        ({"from": "2-1", "to": "4-0"}, 3, 6),
        ({"after": '{"a": "2-1", "b": "3-0"}'}, 4, 9),
        ({"from": "99"}, 10, 9),
    ],
)
@pytest.mark.parametrize("cut", SEVERAL, ids=str)
def test_a_range_is_read_once(
    redis: Redis, store: EmbeddedStore, bounds: dict[str, str], first: int, last: int, cut: dict[str, str]
) -> None:
    made = filled(redis, "a", 10)
    options = {"url": store.url, "streams": "a", "page": "2", **bounds, **cut}
    assert ids(read(options)) == made[first : last + 1]


@pytest.mark.parametrize(
    ("filters", "first", "last"),
    [
        ([], 0, 9),
        ([GreaterThanOrEqual(("id_ms",), 3)], 4, 9),
        ([GreaterThan(("id_ms",), 3)], 6, 9),
        ([LessThan(("id_ms",), 3)], 0, 3),
        ([LessThanOrEqual(("id_ms",), 3)], 0, 5),
        ([EqualTo(("id_ms",), 3)], 4, 5),
        ([GreaterThan(("id_ms",), 1), LessThan(("id_ms",), 4), LessThan(("id_ms",), 9)], 2, 5),
        ([GreaterThan(("id_ms",), 99)], 10, 9),
        ([LessThan(("id_ms",), 0)], 10, 9),
        ([GreaterThan(("id_ms",), -5), LessThan(("id_ms",), -1)], 0, 9),
        (
            [
                EqualTo(("id_n",), 1),
                EqualTo(("id_ms",), None),
                IsNotNull(("id_ms",)),
            ],
            0,
            9,
        ),
    ],
)
def test_bounds_of_a_filter_are_those_of_what_is_read(
    redis: Redis, store: EmbeddedStore, filters: list[Filter], first: int, last: int
) -> None:
    made = filled(redis, "a", 10)
    reader = FilteringReader(options_of({"url": store.url, "streams": "a"}), schema(IDS))
    assert reader.pushFilters(filters) is filters  # all of them are Spark's as well
    reader = pickle.loads(pickle.dumps(reader))
    assert ids(rows(reader, reader.partitions())) == made[first : last + 1]


def test_bounds_of_a_filter_and_of_the_options(redis: Redis, store: EmbeddedStore) -> None:
    made = filled(redis, "a", 10)
    reader = FilteringReader(
        options_of({"url": store.url, "streams": "a", "from": "2-1", "to": "4-0"}), schema(IDS)
    )
    reader.pushFilters([GreaterThan(("id_ms",), 0), LessThan(("id_ms",), 9)])
    assert ids(rows(reader, reader.partitions())) == made[3:7]


def test_an_upper_bound_leaves_out_no_id_that_spark_has_as_negative(
    redis: Redis, store: EmbeddedStore
) -> None:
    for ms in (1, 2, SIGN):
        redis.xadd("a", {"n": ms}, id=f"{ms}-0")
    reader = FilteringReader(options_of({"url": store.url, "streams": "a"}), schema(IDS))
    reader.pushFilters([LessThan(("id_ms",), 2)])
    assert [row["id_ms"] for row in rows(reader, reader.partitions())] == [1, 2, -SIGN]


@pytest.mark.parametrize("page", [1, 7, 99, 100, 101, 1000])
def test_pages_of_any_size(redis: Redis, store: EmbeddedStore, page: int) -> None:
    made = filled(redis, "a", 200)
    assert ids(read({"url": store.url, "streams": "a", "page": str(page)})) == made


def test_a_value_that_looks_like_an_entry_is_one_of_its_own(redis: Redis, store: EmbeddedStore) -> None:
    """As the last of a page: what comes behind is asked for before the page is taken apart."""
    odd = b"*1\r\n*2\r\n$3\r\n%d-7\r\n*0\r\n"
    made = [f"{n}-0" for n in range(1, 301)]
    for n, entry_id in enumerate(made, 1):
        redis.xadd("a", {"text": odd % (n + 5) if n % 100 == 0 else b"x"}, id=entry_id)
    assert ids(read({"url": store.url, "streams": "a", "page": "100"})) == made


def test_the_server_works_while_a_page_is_taken_apart(
    redis: Redis, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is asked for twice."""
    filled(redis, "a", 1000)
    before = calls(redis)
    ahead = [2, 3, 4, 4]  # asked for when a page is taken apart: of 100, 400, 400, 100 entries

    def page_of(reply: memoryview) -> Page:
        expected = before + ahead.pop(0)
        assert eventually(lambda: calls(redis) >= expected)  # it was sent, perhaps not yet worked on
        return replies.page_of(reply)

    monkeypatch.setattr("pyspark_redis_stream.pages.page_of", page_of)
    with Store(options_of({"url": store.url, "streams": "a"})) as source:
        assert sum(len(page.ids) for page in pages(source, "a", Id(0), Id(10**6), 400)) == 1000
    assert (ahead, calls(redis) - before) == ([], 4)


def test_large_entries_make_smaller_pages(redis: Redis, store: EmbeddedStore) -> None:
    made = filled(redis, "a", 150, size=64 * 1024)
    asked = calls(redis)
    assert ids(read({"url": store.url, "streams": "a"}, IDS)) == made
    assert calls(redis) - asked > 7  # 100, then 8 or so at a time


def test_partitions_are_equal_where_a_counter_tells(redis: Redis, store: EmbeddedStore) -> None:
    for n in range(1000):  # nearly all in one millisecond
        redis.xadd("a", {"seq": n + 1}, id="900-0" if n == 999 else f"5-{n}" if n else "1-0")
    options = options_of(
        {"url": store.url, "streams": "a", "partitions": "4", "counter": "seq", "page": "10"}
    )
    with Store(options) as source:
        partitions = Streams(options, source).partitions("a", Id(0), Id(900))
    lengths = [
        len(redis.xrange("a", str(partition.first), str(partition.last)) or ()) for partition in partitions
    ]
    assert len(lengths) == 4
    assert sum(lengths) == 1000
    assert max(lengths) <= 252


def test_many_streams_and_a_pattern(redis: Redis, store: EmbeddedStore) -> None:
    for name in ("ns:{a}:events", "ns:{b}:events", "ns:{b}:audit"):
        filled(redis, name, 4)
    redis.set("ns:{c}:events", "no stream")
    for options in (
        {"pattern": "ns:{*}:events"},
        {"streams": "ns:{b}:events,ns:{a}:events,ns:{none}:events"},
    ):
        found = read({"url": store.url, **options}, {"stream": TEXT, **IDS})
        assert sorted((row["stream"], row["id_ms"], row["id_n"]) for row in found) == [
            (f"ns:{{{name}}}:events", ms, n) for name in "ab" for ms in (1, 2) for n in (0, 1)
        ]


def test_on_every_engine(each_store: EmbeddedStore) -> None:
    with Redis.from_url(each_store.url) as redis:
        made = filled(redis, "a", 10)
    assert ids(read({"url": each_store.url, "streams": "a"})) == made


def test_nothing_is_read_of_nothing(store: EmbeddedStore) -> None:
    assert read({"url": store.url, "streams": "a"}) == []
    assert read({"url": store.url, "pattern": "a*"}) == []


def test_a_key_that_is_no_stream_is_named(redis: Redis, store: EmbeddedStore) -> None:
    redis.set("a", "text")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        read({"url": store.url, "streams": "a"})


def test_an_unreachable_store_is_an_error_after_the_retries() -> None:
    with pytest.raises(ConnectionError):
        read({"url": "redis://127.0.0.1:1", "streams": "a", "retrySeconds": "0"})


def test_a_wrong_password_fails_at_once_and_is_not_shown(redis: Redis, store: EmbeddedStore) -> None:
    redis.config_resetstat()
    redis.config_set("requirepass", "right")
    try:
        with pytest.raises(AuthenticationError) as failure:
            read({"url": store.url, "streams": "a", "password": "wrongest"})
        assert "wrongest" not in str(failure.value)
        assert redis.info("commandstats")["cmdstat_auth"]["failed_calls"] < 3
        assert read({"url": store.url, "streams": "a", "password": "right"}) == []
    finally:
        redis.config_set("requirepass", "")


@pytest.mark.parametrize(
    "url", ["http://x", "redis+sentinel://127.0.0.1:1", "redis+cluster://", "redis+other://x:1"]
)
def test_a_url_of_no_known_form_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="option url") as failure:
        read({"url": f"{url}?password=secret", "streams": "a"})
    assert "secret" not in str(failure.value)


def test_a_connection_that_is_cut_goes_unnoticed(redis: Redis, store: EmbeddedStore) -> None:
    made = filled(redis, "a", 500)
    found = []
    with Store(options_of({"url": store.url, "streams": "a"})) as source:
        for page in pages(source, "a", Id(0), Id(10**6), 100):
            found += [one.decode() for one in page.ids.to_pylist()]
            redis.client_kill_filter(_type="normal", skipme=True)
    assert found == made
