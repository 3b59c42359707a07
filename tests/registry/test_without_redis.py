"""The same scripts on an in-process store, so that users of the library can test without a server."""

from collections.abc import Iterator

import fakeredis
import pytest

from registry.kv import put, table
from registry.queue_data.rewrite import wipe_write_perm
from registry.removal import release_owner, remove_disconnected
from registry.topics import delete_topic
from tests.registry.brokers import address, mapping_info, origin
from tests.registry.namespace import Namespace


@pytest.fixture
def ns() -> Iterator[Namespace]:
    namespace = Namespace(fakeredis.FakeRedis(decode_responses=True))
    yield namespace
    namespace.clean_up()
    namespace.check()


def test_the_life_of_a_broker(ns: Namespace) -> None:
    many = [f"T{number}" for number in range(600)]
    ns.register(topics=many, mappings=[mapping_info("T1")], filters=("f:1",), owner="w1/1", acting=True)
    ns.register("b1", 1, acting=True)
    ns.register(topics=many, version=2, acting=True)
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    ns.run(delete_topic(ns.keys, "T5", "", origin()))
    ns.tick()
    assert len(ns.topics()) == 599
    disconnected = ns.run(release_owner(ns.keys, "c1", address("b1"), "w1/1"))
    assert disconnected is not None
    ns.run(remove_disconnected(ns.keys, disconnected, "lost", origin()))
    assert ns.addrs() == {1: address("b1", 1)}
    ns.lapse("b1", 1)
    assert ns.heartbeat("b1", 1).event_id
    ns.lapse("b1", 1)
    assert ns.expire() == 1
    assert ns.addrs() == {}


def test_kv(ns: Namespace) -> None:
    ns.run(put(ns.keys, "ORDER_TOPIC_CONFIG", "T", "b1:4", origin()))
    assert ns.run(table(ns.keys, "ORDER_TOPIC_CONFIG")) == {"T": "b1:4"}
    assert ns.register().order_table == {"T": "b1:4"}
