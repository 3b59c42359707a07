"""What the route cache keeps, and what makes it untrue."""

import time

import pytest

from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, encode
from tests.worker.scene import asynchronous
from worker.cache.routes import RouteCache
from worker.cache.views import CLUSTER_INFO, PLAIN_LEGACY, PLAIN_STANDARD, AskedView, Key
from worker.counters import Counters
from worker.reply import Depends, Reply

TA: Key = ("TA", PLAIN_LEGACY)
TB: Key = ("TB", PLAIN_LEGACY)
MISSING: Key = ("X", PLAIN_LEGACY)
ROUTE_A = Reply(body=b"a", depends=Depends(frozenset({"a", "b"}), listed={"a": frozenset({0, 1})}))
ROUTE_B = Reply(body=b"b", depends=Depends(frozenset({"b"}), listed={"b": frozenset({0})}))
NO_ROUTE = Reply(ResponseCode.TOPIC_NOT_EXIST, depends=Depends(frozenset({"gone"})))
CLUSTERS = Reply(body=b"c", depends=Depends(every=True, listed={"a": frozenset({0, 1}), "b": frozenset({0})}))


def filled(limit: int = 1 << 20) -> RouteCache:
    """A cache that holds all of the above; call it on a running loop."""
    cache = RouteCache(limit, Counters())
    for key, answer in ((TA, ROUTE_A), (TB, ROUTE_B), (MISSING, NO_ROUTE), (CLUSTER_INFO, CLUSTERS)):
        cache.end(cache.begin(key), answer)
    return cache


def held(cache: RouteCache) -> set[str]:
    names = {"TA": TA, "TB": TB, "X": MISSING, "106": CLUSTER_INFO}
    return {name for name, key in names.items() if cache.get(key) is not None}


@pytest.mark.parametrize(
    ("topics", "brokers", "left"),
    [
        pytest.param([], [], {"TA", "TB", "X", "106"}, id="nothing-changed"),
        pytest.param(["TA"], [], {"TB", "X", "106"}, id="a-topic"),
        pytest.param(["TA", "X"], [], {"TB", "106"}, id="topics-and-a-missing-one"),
        pytest.param(["Other"], [], {"TA", "TB", "X", "106"}, id="a-topic-that-is-not-cached"),
        pytest.param([], ["a"], {"TB", "X"}, id="a-broker-takes-its-topics-and-106"),
        pytest.param([], ["b"], {"X"}, id="also-where-it-was-left-out"),
        pytest.param([], ["gone"], {"TA", "TB"}, id="also-of-missing-topics"),
        pytest.param([], ["new"], {"TA", "TB", "X"}, id="a-new-broker-changes-106"),
    ],
)
@asynchronous
async def test_a_change_drops_what_was_made_of_it(
    topics: list[str], brokers: list[str], left: set[str]
) -> None:
    cache = filled()
    cache.drop_topics(topics)
    cache.drop_brokers(brokers)
    assert held(cache) == left


@pytest.mark.parametrize(
    ("key", "answer", "topics", "brokers", "kept"),
    [
        pytest.param(TA, ROUTE_A, [], [], True, id="undisturbed"),
        pytest.param(TA, ROUTE_A, ["TA"], [], False, id="its-topic-was-named"),
        pytest.param(TA, ROUTE_A, ["TB"], [], True, id="another-topic-was-named"),
        pytest.param(TA, ROUTE_A, [], ["b"], False, id="its-broker-was-named"),
        pytest.param(TA, ROUTE_A, [], ["other"], True, id="another-broker-was-named"),
        pytest.param(CLUSTER_INFO, CLUSTERS, [], ["other"], False, id="106-and-any-broker"),
        pytest.param(CLUSTER_INFO, CLUSTERS, ["TA"], [], True, id="106-and-a-topic"),
        pytest.param(MISSING, NO_ROUTE, ["X"], [], False, id="a-missing-topic-comes"),
    ],
)
@asynchronous
async def test_a_fill_in_flight_is_not_kept_once_it_was_named(
    key: Key, answer: Reply, topics: list[str], brokers: list[str], kept: bool
) -> None:
    cache = RouteCache(1 << 20, Counters())
    fill = cache.begin(key)
    cache.drop_topics(topics)
    cache.drop_brokers(brokers)
    cache.end(fill, answer)
    assert (cache.get(key) is answer) is kept


@asynchronous
async def test_a_lookup_after_a_change_does_not_join_a_fill_from_before() -> None:
    cache = RouteCache(1 << 20, Counters())
    before = cache.begin(TA)
    assert cache.fill_under_way(TA) is before
    cache.drop_brokers(["any-broker"])
    assert cache.fill_under_way(TA) is None
    after = cache.begin(TA)
    cache.end(before, ROUTE_B)
    assert cache.fill_under_way(TA) is after
    cache.end(after, ROUTE_A)
    assert cache.get(TA) is ROUTE_A
    cache.drop_topics(["TA"])
    assert cache.get(TA) is None


@asynchronous
async def test_all_is_dropped_and_fills_with_it() -> None:
    cache = filled()
    fill = cache.begin(("TC", PLAIN_STANDARD))
    cache.drop_all()
    cache.end(fill, ROUTE_B)
    assert held(cache) == set()
    assert (len(cache), cache.size) == (0, 0)


@asynchronous
async def test_an_answer_without_dependencies_is_not_kept() -> None:
    cache = RouteCache(1 << 20, Counters())
    cache.end(cache.begin(TA), Reply(body=b"from somewhere else"))
    assert cache.get(TA) is None


def answer_of(size: int, topic: str = "T") -> Reply:
    return Reply(body=b"x" * size, depends=Depends(frozenset({"a"})))


@asynchronous
async def test_bytes_are_bounded_and_what_is_used_stays() -> None:
    cache = RouteCache(100_000, Counters())
    keys: list[Key] = [(f"T{number}", PLAIN_LEGACY) for number in range(100)]
    for key in keys:
        cache.end(cache.begin(key), answer_of(3_000, key[0]))
        assert cache.size <= 100_000
        assert cache.get(keys[0]) is not None
    assert cache.get(keys[-1]) is not None
    assert cache.get(keys[1]) is None
    cache.drop_brokers(["a"])
    assert [key for key in keys if cache.get(key) is not None] == []
    for key in keys:
        cache.end(cache.begin(key), answer_of(3_000, key[0]))
    assert cache.size <= 100_000
    assert len(cache) == sum(cache.get(key) is not None for key in keys), "what was untrue has made way"


@asynchronous
async def test_random_missing_topics_do_not_push_routes_out() -> None:
    cache = RouteCache(100_000, Counters())
    cache.end(cache.begin(TA), ROUTE_A)
    for number in range(1000):
        topic = f"random-{number}"
        missing = Reply(ResponseCode.TOPIC_NOT_EXIST, depends=Depends())
        cache.end(cache.begin((topic, PLAIN_LEGACY)), missing)
    assert cache.get(TA) is ROUTE_A
    assert cache.size < 20_000


@asynchronous
async def test_what_was_found_lists_the_brokers_that_have_not_changed_since() -> None:
    def listed() -> dict[Key, set[str]]:
        return {key: set(answer.depends.listed) for key, answer in cache.last_replies() if answer.depends}

    cache = filled()
    assert listed() == {TA: {"a"}, TB: {"b"}, CLUSTER_INFO: {"a", "b"}}
    cache.drop_brokers(["a"])
    assert listed() == {TA: set(), TB: {"b"}, CLUSTER_INFO: {"b"}}
    assert cache.get(TA) is None
    assert listed()[TB] == {"b"}
    cache.drop_topics(["TB"], "c")
    assert listed()[TB] == {"b"}
    cache.drop_topics(["TB"], "b")
    assert listed()[TB] == set()
    cache.end(cache.begin(TB), ROUTE_B)
    assert listed()[TB] == {"b"}


@asynchronous
async def test_naming_a_broker_of_many_routes_is_quick() -> None:
    cache = RouteCache(1 << 30, Counters())
    for number in range(20_000):
        topic = f"T{number}"
        cache.end(cache.begin((topic, PLAIN_LEGACY)), answer_of(100, topic))
    before = time.process_time()
    cache.drop_brokers(["a"])
    assert time.process_time() - before < 0.002
    assert cache.get(("T1", PLAIN_LEGACY)) is None


@asynchronous
async def test_one_answer_does_not_take_all_the_room() -> None:
    cache = RouteCache(100_000, Counters())
    cache.end(cache.begin(TA), answer_of(50_000, "TA"))
    assert cache.get(TA) is None


@asynchronous
async def test_each_view_of_a_topic_has_an_answer_of_its_own_and_falls_with_it() -> None:
    cache = RouteCache(1 << 20, Counters())
    views = (PLAIN_LEGACY, PLAIN_STANDARD, AskedView(True, False, "z1"), AskedView(False, True, None))
    for view in views:
        cache.end(cache.begin(("TA", view)), Reply(body=str(view).encode(), depends=ROUTE_A.depends))
    for view in views:
        reply = cache.get(("TA", view))
        assert reply is not None
        assert reply.body == str(view).encode()
    cache.drop_topics(["TA"])
    assert [view for view in views if cache.get(("TA", view)) is not None] == []


@asynchronous
async def test_zones_that_a_peer_makes_up_are_bounded_and_leave_other_views_alone() -> None:
    cache = RouteCache(1 << 20, Counters())
    plain: tuple[Key, ...] = (TA, ("TA", PLAIN_STANDARD), ("TA", AskedView(False, True, None)))
    for key in plain:
        cache.end(cache.begin(key), ROUTE_A)
    zones: list[Key] = [("TA", AskedView(True, False, f"{number:0100}")) for number in range(100)]
    for key in zones:
        cache.end(cache.begin(key), ROUTE_A)
    cached = [key for key in (*plain, *zones) if cache.get(key) is not None]
    assert cached == [*plain, *zones[-13:]]
    cache.drop_topics(["TA"])
    assert [key for key in cached if cache.get(key) is not None] == []


@asynchronous
async def test_the_name_of_a_zone_counts() -> None:
    cache = RouteCache(1 << 20, Counters())
    cache.end(cache.begin(("TA", AskedView(True, False, "z" * 50_000))), ROUTE_A)
    assert cache.size > 200_000  # a character takes up to four bytes
    cache.end(cache.begin(("TA", AskedView(True, False, "z" * 100_000))), ROUTE_A)
    assert len(cache) == 1


def asked_for(cache: RouteCache, key: Key, opaque: int = 1, version: int = 399) -> bytes:
    """The frame of a lookup whose reply is kept under `key`; the request is cached."""
    command = Command(105, opaque, 0, version, ext={"topic": key[0]})
    cache.keep_request(key, encode(command), command)
    return encode(command)


@asynchronous
async def test_a_request_that_made_way_is_cached_again_with_its_reply() -> None:
    cache = RouteCache(100_000, Counters())
    keys: list[Key] = [(f"T{number}", PLAIN_LEGACY) for number in range(60)]
    for _ in range(2):
        for key in keys:
            if cache.get(key) is None:
                cache.end(cache.begin(key), answer_of(10, key[0]))
            for version in range(4):
                frame = asked_for(cache, key, version=version)
                assert cache.requests.answers(frame, 0.0, 1 << 20)[1] == len(frame)
        assert cache.requests.replies.size <= 50_000
    held = sum(len(entry.requests) for entry in cache.present.entries.values())
    assert held == len(cache.requests) > 10, "a reply holds the requests that are cached, and no others"


@asynchronous
async def test_requests_go_with_their_reply() -> None:
    cache = filled()
    frames = [asked_for(cache, TA, version=version) for version in range(3)]
    assert all(cache.requests.answers(frame, 0.0, 1 << 20)[1] for frame in frames)
    cache.drop_topics(["TA"])
    assert not len(cache.requests)
    assert all(cache.requests.answers(frame, 0.0, 1 << 20)[1] == 0 for frame in frames)
