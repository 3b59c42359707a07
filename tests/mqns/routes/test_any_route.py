"""Whatever a name server answers: the book stays a book."""

from hypothesis import given
from hypothesis import strategies as st

from mqns.routes.queues import MessageQueue, QueueRun, Queues
from mqns.routes.table import TopicRouteTable, sorted_route
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData, decode_route, encode_route
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo

NAMES = st.sampled_from(["a", "b", "", "__syslo__global__", "é"])
INT32 = st.integers(-(2**31), 2**31 - 1)
ADDRESSES = st.sampled_from(["a:1", "b:1", "", "no address", "[::1]:1"])
ORDER = st.none() | st.text(st.sampled_from("ab:;12-٣ "), max_size=12)
MAPPINGS = st.builds(
    TopicQueueMappingInfo,
    st.just("T"),
    NAMES,
    INT32,
    st.dictionaries(INT32, INT32, max_size=3),
    st.sampled_from(["__global__", "own", ""]),
    st.integers(-(2**63), 2**63 - 1),
)
ROUTES = st.builds(
    TopicRouteData,
    st.lists(
        st.builds(BrokerData, NAMES, NAMES, st.dictionaries(st.integers(-1, 3), ADDRESSES, max_size=3)),
        max_size=3,
    ).map(tuple),
    st.lists(st.builds(QueueData, NAMES, INT32, INT32, st.integers(0, 15), INT32), max_size=3).map(tuple),
    order_topic_conf=ORDER,
    topic_queue_mapping_by_broker=st.none() | st.dictionaries(NAMES, MAPPINGS, max_size=3),
)


@given(st.lists(st.tuples(st.sampled_from(["T", "U"]), ROUTES), max_size=5))
def test_the_book_has_the_last_routes_and_their_addresses(answers: list[tuple[str, TopicRouteData]]) -> None:
    book = TopicRouteTable()
    last: dict[str, TopicRouteData] = {}
    for topic, route in answers:
        received = decode_route(encode_route(route, Dialect.STANDARD))
        changed = last.get(topic) != sorted_route(received)
        assert book.put(topic, received) is changed
        assert not book.put(topic, received)
        last[topic] = sorted_route(received)
        cached_route = book.cached_route(topic)
        assert cached_route
        assert cached_route.route == last[topic]
        for queues in (cached_route.publish.queues, cached_route.subscribe):
            for queue in queues[:3] + queues[-3:]:
                assert queue.topic == topic
                assert isinstance(book.broker_of(queue), str)
    book.drop_offline()
    assert book.drop_offline() == []
    alive = {
        (data.broker_name, address)
        for route in last.values()
        for data in route.broker_datas
        for address in data.broker_addrs.values()
    }
    kept = {(name, address) for name, table in book.addresses.items() for address in table.values()}
    assert {address for _, address in kept} <= {address for _, address in alive}
    assert all(book.addresses.values())


@given(st.lists(st.tuples(NAMES, st.integers(-2, 5)), max_size=5), st.integers(-30, 30), st.integers(-30, 30))
def test_queues_are_a_list_that_is_not_there(runs: list[tuple[str, int]], start: int, stop: int) -> None:
    queues = Queues("T", [QueueRun(name, count) for name, count in runs])
    listed = [MessageQueue("T", name, number) for name, count in runs for number in range(count)]
    assert list(queues) == listed
    assert len(queues) == len(listed)
    assert queues[start:stop] == listed[start:stop]
    assert queues[start:stop:-2] == listed[start:stop:-2]
