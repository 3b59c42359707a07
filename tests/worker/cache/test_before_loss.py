"""Brokers that have not registered again with a store that came back empty are shown as they were."""

from msgspec.structs import replace

from rocketmq_remoting.cluster import ClusterInfo, decode_cluster_info, encode_cluster_info
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData, decode_route, encode_route
from worker.cache.before_loss import BeforeLoss
from worker.cache.views import CLUSTER_INFO, PLAIN_LEGACY, PLAIN_STANDARD, AskedView, Key
from worker.reply import Depends, Reply

T: Key = ("T", PLAIN_LEGACY)
A = BrokerData("c1", "a", {0: "a:1", 1: "a:2"}, enable_acting_master=True, zone_name="z")
B = BrokerData("c1", "b", {0: "b:1"})
C = BrokerData("c2", "c", {0: "c:1"})


def queues(name: str, number: int) -> QueueData:
    return QueueData(name, number, number, 6, 0)


def route(
    *brokers: BrokerData, number: int = 4, filters: dict[str, tuple[str, ...]] | None = None
) -> TopicRouteData:
    return TopicRouteData(brokers, tuple(queues(b.broker_name, number) for b in brokers), filters or {})


def depends(*brokers: BrokerData) -> Depends:
    names = frozenset(b.broker_name for b in brokers)
    return Depends(names, listed={b.broker_name: frozenset(b.broker_addrs) for b in brokers})


def answer(found: TopicRouteData, dialect: Dialect = Dialect.LEGACY) -> Reply:
    return Reply(body=encode_route(found, dialect), depends=depends(*found.broker_datas))


MISSING = Reply(ResponseCode.TOPIC_NOT_EXIST, "no route", depends=Depends())


def cache_of(*replies: tuple[Key, Reply]) -> BeforeLoss:
    cache = BeforeLoss(1 << 20)
    cache.begin(replies)
    return cache


def test_nothing_is_laid_over_what_the_store_has_always_had() -> None:
    now = answer(route(A))
    assert BeforeLoss(1 << 20).complete(T, now) is now
    assert cache_of((T, answer(route(A)))).complete(("Other", PLAIN_LEGACY), now) is now


def test_a_topic_that_no_broker_has_registered_again_is_as_it_was() -> None:
    before = answer(route(A, B, filters={"a:1": ("f:1",)}))
    shown = cache_of((T, before)).complete(T, MISSING)
    assert (shown.code, shown.body) == (0, before.body)
    assert shown.depends == before.depends


def test_a_broker_that_is_back_is_shown_as_the_store_has_it() -> None:
    cache = cache_of((T, answer(route(A, B))))
    moved = replace(B, broker_addrs={0: "b:9"})
    assert cache.returned("b", frozenset({0}))
    shown = decode_route(cache.complete(T, answer(route(moved, C, number=8))).body)
    assert set(map(str, shown.broker_datas)) == set(map(str, (A, moved, C)))
    assert set(shown.queue_datas) == {queues("a", 4), queues("b", 8), queues("c", 8)}


def test_of_a_group_the_ids_that_are_not_back_are_added() -> None:
    cache = cache_of((T, answer(route(A))))
    master = replace(A, broker_addrs={0: "a:9"})
    assert not cache.returned("a", frozenset({0}))
    shown = decode_route(cache.complete(T, answer(route(master, number=8))).body)
    assert shown.broker_datas == (replace(A, broker_addrs={0: "a:9", 1: "a:2"}),)
    assert shown.queue_datas == (queues("a", 8),)
    assert cache.returned("a", frozenset({0, 1}))
    now = answer(route(master))
    assert cache.complete(T, now) is now


def test_a_broker_that_left_is_not_shown() -> None:
    cache = cache_of((T, answer(route(A, B))))
    assert cache.returned("a", None)
    assert decode_route(cache.complete(T, MISSING).body) == route(B)
    assert cache.returned("b", None)
    assert cache.complete(T, MISSING) is MISSING
    assert not cache.returned("b", None)


def test_a_reply_changes_when_an_awaited_broker_comes() -> None:
    shown = cache_of((T, answer(route(A)))).complete(T, answer(route(B)))
    assert shown.depends == Depends(
        frozenset({"a", "b"}), listed={"a": frozenset({0, 1}), "b": frozenset({0})}
    )


def test_what_may_not_be_kept_is_not_kept_with_more_in_it() -> None:
    now = replace(answer(route(B)), depends=None)
    assert cache_of((T, answer(route(A)))).complete(T, now).depends is None


def test_a_store_that_is_lost_again() -> None:
    away = Reply(ResponseCode.SYSTEM_ERROR, "the store cannot serve now")
    assert cache_of((T, answer(route(A)))).complete(T, away) is away


def test_each_view_of_a_topic_keeps_its_dialect() -> None:
    standard: Key = ("T", PLAIN_STANDARD)
    old: Key = ("T", AskedView(standard=False, omits_v5=True, zone=None))
    before = answer(route(A), Dialect.STANDARD)
    bare = replace(before, body=encode_route(route(A), Dialect.LEGACY, v5_members=False))
    cache = cache_of((standard, before), (old, bare))
    assert cache.complete(standard, MISSING).body == before.body
    assert cache.complete(old, MISSING).body == bare.body


def test_clusters_show_awaited_brokers() -> None:
    was = ClusterInfo({"a": A, "b": B, "c": C}, {"c1": ("a", "b"), "c2": ("c",)})
    before = Reply(body=encode_cluster_info(was), depends=replace(depends(A, B, C), every=True))
    cache = cache_of((CLUSTER_INFO, before))
    cache.returned("c", None)
    moved = replace(B, cluster="c3")
    assert cache.returned("b", frozenset({0}))
    now = Reply(
        body=encode_cluster_info(ClusterInfo({"b": moved}, {"c3": ("b",)})),
        depends=replace(depends(moved), every=True),
    )
    shown = cache.complete(CLUSTER_INFO, now)
    info = decode_cluster_info(shown.body)
    assert info.cluster_addr_table == {"c1": ("a",), "c3": ("b",)}
    assert info.broker_addr_table == {"a": A, "b": moved}
    assert shown.depends is not None
    assert shown.depends.every


def test_after_long_enough_only_the_store_counts() -> None:
    cache = cache_of((T, answer(route(A))))
    assert set(cache.end()) == {"a"}
    assert cache.complete(T, MISSING) is MISSING


def test_a_store_emptied_twice_is_waited_for_by_all_that_was_shown() -> None:
    cache = cache_of((T, answer(route(A))))
    cache.begin([(("U", PLAIN_LEGACY), answer(route(B)))])
    assert decode_route(cache.complete(T, MISSING).body) == route(A)
    assert cache.returned("a", None)
    assert cache.returned("b", None)


def test_a_broker_that_came_back_while_the_store_was_asked_is_shown_all_the_same() -> None:
    cache = cache_of((T, answer(route(A, B))))
    asked = cache.awaited
    assert cache.returned("b", frozenset({0}))
    assert decode_route(cache.complete(T, MISSING, asked).body) == route(A, B)
    assert decode_route(cache.complete(T, MISSING).body) == route(A)


def test_a_broker_that_was_back_is_not_awaited_again_because_of_an_old_reply() -> None:
    cache = cache_of((T, answer(route(A, B))))
    assert cache.returned("b", None)
    cache.begin([(("U", PLAIN_LEGACY), answer(route(C)))])
    assert cache.awaited.keys() == {"a", "c"}


def test_their_bytes_are_bounded_however_often_the_store_is_lost() -> None:
    before = BeforeLoss(50_000)
    for loss in range(3):
        before.begin([((f"{loss}-{number}", PLAIN_LEGACY), answer(route(A))) for number in range(20)])
        assert before._replies.size <= 50_000
    assert before.complete(("2-19", PLAIN_LEGACY), MISSING).body
    assert before.complete(("0-0", PLAIN_LEGACY), MISSING) is MISSING
