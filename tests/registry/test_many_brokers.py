"""More brokers than one script may work through: what is read and written of them all is whole."""

from collections.abc import Iterator

import pytest
import redis as redis_py

from registry.clusters import cluster_info
from registry.errors import TopicNotFound
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

NAMES = tuple(f"b{number:03}" for number in range(420))


@pytest.fixture
def many(redis: redis_py.Redis) -> Iterator[Namespace]:
    """Brokers that all have T1 and T2; those with an even number are in c1, others in c2."""
    namespace = Namespace(redis)
    for number, name in enumerate(NAMES):
        namespace.register(name, cluster=f"c{1 + number % 2}")
    yield namespace
    namespace.clean_up()
    namespace.check()


def test_all_are_read(many: Namespace) -> None:
    info = many.run(cluster_info(many.keys))
    assert (tuple(info.broker_addr_table), info.cluster_addr_table["c2"]) == (NAMES, NAMES[1::2])
    assert sorted(data.broker_name for data in many.route("T1").broker_datas) == [*NAMES]


def test_a_topic_is_set_and_deleted_on_all(many: Namespace) -> None:
    many.new_entries()
    queues = [QueueData(name, 4, 4, 6, 0) for name in NAMES]
    last = many.run(register_topic(many.keys, "T1", queues, origin()))
    events = many.new_entries()
    assert (str(events[-1].id), sum(int(event.get("count")) for event in events)) == (last, len(NAMES))
    assert {data.read_queue_nums for data in many.route("T1").queue_datas} == {4}
    many.run(delete_topic(many.keys, "T1", "c2", origin()))
    assert sorted(data.broker_name for data in many.route("T1").queue_datas) == [*NAMES[::2]]
    many.run(delete_topic(many.keys, "T1", "", origin()))
    with pytest.raises(TopicNotFound):
        many.route("T1")
    assert many.run(delete_topic(many.keys, "T1", "", origin())) == ""


def test_an_unknown_broker_ends_a_long_list(many: Namespace) -> None:
    """What stands before it is set if the topic is there already, as of a short list."""
    queues = [QueueData(name, 4, 4, 6, 0) for name in (*NAMES[:400], "unknown", *NAMES[400:])]
    assert many.run(register_topic(many.keys, "new", queues, origin())) == ""
    many.run(register_topic(many.keys, "T1", queues, origin()))
    numbers = [data.read_queue_nums for data in many.route("T1").queue_datas]
    assert (numbers.count(4), numbers.count(8)) == (400, 20)
