"""What a client knows of routes and addresses."""

from msgspec.structs import replace

from mqns.routes.queues import MessageQueue
from mqns.routes.static_topics import NO_BROKER, mock_broker_name
from mqns.routes.table import TopicRouteTable
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from tests.mqns.routes.routes import group, queues, route, static

A, B = group("a", 0, 1), group("b", 0)
ADDRESSES = {"a": {0: "a-0:10911", 1: "a-1:10911"}, "b": {0: "b-0:10911"}}


def test_a_new_route_is_a_change() -> None:
    book = TopicRouteTable()
    assert book.cached_route("T") is None
    assert book.put("T", route(queues("a"), A, B))
    cached_route = book.cached_route("T")
    assert cached_route
    assert len(cached_route.publish.queues) == len(cached_route.subscribe) == 4
    assert book.addresses == ADDRESSES


def test_the_order_of_a_routes_lists_is_no_change() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), queues("b"), A, B))
    assert not book.put("T", route(queues("b"), queues("a"), B, A))
    assert book.put("T", route(queues("b"), queues("a", perm=4), B, A))
    assert book.put("T", route(queues("b"), queues("a", perm=4), B, A, order="a:1"))


def test_a_changed_route_replaces_the_addresses_of_a_name() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), A, B))
    book.put("T", route(queues("a"), group("a", 2)))
    assert book.addresses == {"a": {2: "a-2:10911"}, "b": {0: "b-0:10911"}}


def test_what_was_handed_out_stays_as_it_was() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), A, B))
    before = book.addresses
    book.put("T", route(queues("a"), group("a", 2)))
    book.drop_offline()
    assert before == ADDRESSES


def test_addresses_in_no_route_are_dropped_and_then_names_without_any() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), A, B))
    book.put("U", route(queues("b"), B))
    assert book.drop_offline() == []
    assert book.addresses == ADDRESSES
    book.put("T", route(queues("a"), group("a", 0)))
    book.put("U", route())
    assert book.drop_offline() == ["b-0:10911"]
    assert book.addresses == {"a": {0: "a-0:10911"}}


def test_an_address_may_be_alive_under_another_name() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), A))
    book.put("T", route(queues("b"), replace(A, broker_name="b", broker_addrs={0: "a-1:10911"})))
    assert book.drop_offline() == ["a-0:10911"]
    assert book.addresses == {"a": {1: "a-1:10911"}, "b": {0: "a-1:10911"}}


def test_a_topic_that_is_forgotten_keeps_no_address() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), A))
    book.put("U", route(queues("b"), B))
    book.retain({"U", "V"})
    assert book.cached_route("T") is None
    assert sorted(book.drop_offline()) == ["a-0:10911", "a-1:10911"]
    assert book.cached_route("U")
    assert book.addresses == {"b": {0: "b-0:10911"}}


def test_a_queue_of_a_static_topic_is_served_by_the_mapping_of_the_highest_epoch() -> None:
    old = TopicQueueMappingInfo("T", "a", 4, {0: 0, 1: 1}, epoch=1)
    new = TopicQueueMappingInfo("T", "b", 4, {1: 0, 2: 1}, epoch=2)
    for infos in ((old, new), (new, old)):
        book = TopicRouteTable()
        book.put("T", static(*infos))
        served = [book.broker_of(MessageQueue("T", "__syslo__global__", number)) for number in range(4)]
        assert served == ["a", "b", "b", NO_BROKER]


def test_each_scope_of_a_static_topic_has_queues_of_its_own() -> None:
    book = TopicRouteTable()
    own = TopicQueueMappingInfo("T", "b", 1, {0: 0}, scope="own")
    book.put("T", static(TopicQueueMappingInfo("T", "a", 2, {0: 0, 1: 1}), own))
    cached_route = book.cached_route("T")
    assert cached_route
    assert [book.broker_of(queue) for queue in cached_route.subscribe] == ["a", "a", "b"]
    assert mock_broker_name("own") == "__syslo__own"


def test_a_queue_of_an_ordinary_topic_is_served_by_its_broker() -> None:
    book = TopicRouteTable()
    book.put("T", route(queues("a"), A))
    book.put("Static", static(TopicQueueMappingInfo("Static", "b", 1, {0: 0}), order="a:1"))
    for topic in ("T", "Static", "unknown"):
        assert book.broker_of(MessageQueue(topic, "a", 0)) == "a"
        assert book.broker_of(MessageQueue(topic, "__syslo__own", 0)) == NO_BROKER
