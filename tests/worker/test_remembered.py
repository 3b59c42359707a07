"""Brokers that have not registered again with a store that came back empty are shown as they were."""

from msgspec.structs import replace

from remoting.cluster import ClusterInfo, decode_cluster_info, encode_cluster_info
from remoting.codes import ResponseCode
from remoting.json_out import Dialect
from remoting.route import BrokerData, QueueData, TopicRouteData, decode_route, encode_route
from worker.answer import Answer, Depends
from worker.remembered import Remembered
from worker.route_view import CLUSTER_INFO, PLAIN_LEGACY, PLAIN_STANDARD, AskedView, Key

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


def answer(found: TopicRouteData, dialect: Dialect = Dialect.LEGACY) -> Answer:
    return Answer(body=encode_route(found, dialect), depends=depends(*found.broker_datas))


MISSING = Answer(ResponseCode.TOPIC_NOT_EXIST, "no route", depends=Depends())


def remembering(*kept: tuple[Key, Answer]) -> Remembered:
    made = Remembered()
    made.begin(kept)
    return made


def test_nothing_is_laid_over_what_the_store_has_always_had() -> None:
    now = answer(route(A))
    assert Remembered().over(T, now) is now
    assert remembering((T, answer(route(A)))).over(("Other", PLAIN_LEGACY), now) is now


def test_a_topic_that_nobody_has_registered_again_is_as_it_was() -> None:
    before = answer(route(A, B, filters={"a:1": ("f:1",)}))
    shown = remembering((T, before)).over(T, MISSING)
    assert (shown.code, shown.body) == (0, before.body)
    assert shown.depends == before.depends


def test_who_is_back_is_shown_as_the_store_has_it() -> None:
    remembered = remembering((T, answer(route(A, B))))
    moved = replace(B, broker_addrs={0: "b:9"})
    assert remembered.settled("b", frozenset({0}))
    shown = decode_route(remembered.over(T, answer(route(moved, C, number=8))).body)
    assert set(map(str, shown.broker_datas)) == set(map(str, (A, moved, C)))
    assert set(shown.queue_datas) == {queues("a", 4), queues("b", 8), queues("c", 8)}


def test_of_a_group_the_ids_that_are_not_back_are_added() -> None:
    remembered = remembering((T, answer(route(A))))
    master = replace(A, broker_addrs={0: "a:9"})
    assert not remembered.settled("a", frozenset({0}))
    shown = decode_route(remembered.over(T, answer(route(master, number=8))).body)
    assert shown.broker_datas == (replace(A, broker_addrs={0: "a:9", 1: "a:2"}),)
    assert shown.queue_datas == (queues("a", 8),)
    assert remembered.settled("a", frozenset({0, 1}))
    now = answer(route(master))
    assert remembered.over(T, now) is now


def test_who_left_is_not_shown() -> None:
    remembered = remembering((T, answer(route(A, B))))
    assert remembered.settled("a", None)
    assert decode_route(remembered.over(T, MISSING).body) == route(B)
    assert remembered.settled("b", None)
    assert remembered.over(T, MISSING) is MISSING
    assert not remembered.settled("b", None)


def test_an_answer_changes_when_one_who_is_waited_for_comes() -> None:
    shown = remembering((T, answer(route(A)))).over(T, answer(route(B)))
    assert shown.depends == Depends(
        frozenset({"a", "b"}), listed={"a": frozenset({0, 1}), "b": frozenset({0})}
    )


def test_what_may_not_be_kept_is_not_kept_with_more_in_it() -> None:
    now = replace(answer(route(B)), depends=None)
    assert remembering((T, answer(route(A)))).over(T, now).depends is None


def test_a_store_that_is_away_again_is_told() -> None:
    away = Answer(ResponseCode.SYSTEM_ERROR, "the store cannot serve now")
    assert remembering((T, answer(route(A)))).over(T, away) is away


def test_each_view_of_a_topic_keeps_its_dialect() -> None:
    standard: Key = ("T", PLAIN_STANDARD)
    old: Key = ("T", AskedView(standard=False, omits_v5=True, zone=None))
    before = answer(route(A), Dialect.STANDARD)
    bare = replace(before, body=encode_route(route(A), Dialect.LEGACY, v5_members=False))
    remembered = remembering((standard, before), (old, bare))
    assert remembered.over(standard, MISSING).body == before.body
    assert remembered.over(old, MISSING).body == bare.body


def test_clusters_show_who_is_waited_for() -> None:
    was = ClusterInfo({"a": A, "b": B, "c": C}, {"c1": ("a", "b"), "c2": ("c",)})
    before = Answer(body=encode_cluster_info(was), depends=replace(depends(A, B, C), every=True))
    remembered = remembering((CLUSTER_INFO, before))
    remembered.settled("c", None)
    moved = replace(B, cluster="c3")
    assert remembered.settled("b", frozenset({0}))
    now = Answer(
        body=encode_cluster_info(ClusterInfo({"b": moved}, {"c3": ("b",)})),
        depends=replace(depends(moved), every=True),
    )
    shown = remembered.over(CLUSTER_INFO, now)
    info = decode_cluster_info(shown.body)
    assert info.cluster_addr_table == {"c1": ("a",), "c3": ("b",)}
    assert info.broker_addr_table == {"a": A, "b": moved}
    assert shown.depends is not None
    assert shown.depends.every


def test_after_long_enough_only_the_store_counts() -> None:
    remembered = remembering((T, answer(route(A))))
    assert set(remembered.forget()) == {"a"}
    assert remembered.over(T, MISSING) is MISSING


def test_a_store_emptied_twice_is_waited_for_by_all_that_was_shown() -> None:
    remembered = remembering((T, answer(route(A))))
    remembered.begin([(("U", PLAIN_LEGACY), answer(route(B)))])
    assert decode_route(remembered.over(T, MISSING).body) == route(A)
    assert remembered.settled("a", None)
    assert remembered.settled("b", None)


def test_who_came_back_while_the_store_was_asked_is_shown_all_the_same() -> None:
    remembered = remembering((T, answer(route(A, B))))
    asked = remembered.awaited
    assert remembered.settled("b", frozenset({0}))
    assert decode_route(remembered.over(T, MISSING, asked).body) == route(A, B)
    assert decode_route(remembered.over(T, MISSING).body) == route(A)


def test_who_was_back_is_not_waited_for_again_because_of_an_old_answer() -> None:
    remembered = remembering((T, answer(route(A, B))))
    assert remembered.settled("b", None)
    remembered.begin([(("U", PLAIN_LEGACY), answer(route(C)))])
    assert remembered.awaited.keys() == {"a", "c"}
