"""The queues of a consumer, and the broker it pulls from."""

import pytest

from mqns.routes.subscribe import FindBrokerResult, find_broker, subscribe_queues
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from tests.mqns.routes.routes import group, queues, route, static


def test_all_that_may_be_read() -> None:
    of = route(queues("b", read=1), queues("a", read=2), queues("c", perm=2), group("a", 1))
    assert [(queue.broker_name, queue.queue_id) for queue in subscribe_queues("T", of)] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
    ]


def test_a_static_topic_has_its_own() -> None:
    of = static(TopicQueueMappingInfo("T", "a", 2, {0: 0}), order="a:1")
    assert [(queue.broker_name, queue.queue_id) for queue in subscribe_queues("T", of)] == [
        ("__syslo__global__", 0),
        ("__syslo__global__", 1),
    ]


ALL = {0: "m:1", 1: "s1:1", 3: "s3:1"}


@pytest.mark.parametrize(
    ("addresses", "wanted", "found"),
    [
        pytest.param(ALL, 0, FindBrokerResult("m:1", is_slave=False), id="the master"),
        pytest.param(ALL, 1, FindBrokerResult("s1:1", is_slave=True), id="a slave"),
        pytest.param(ALL, 2, FindBrokerResult("s3:1", is_slave=True), id="the next slave"),
        pytest.param(ALL, 7, FindBrokerResult("m:1", is_slave=False), id="any"),
        pytest.param(
            {1: "s1:1"}, 0, FindBrokerResult("s1:1", is_slave=True), id="any, there being no master"
        ),
        pytest.param({}, 0, None, id="none"),
    ],
)
def test_the_broker_to_pull_from(
    addresses: dict[int, str], wanted: int, found: FindBrokerResult | None
) -> None:
    assert find_broker(addresses, wanted) == found


def test_only_the_wanted_one() -> None:
    assert find_broker({1: "s1:1"}, 0, only_this=True) is None
    assert find_broker(ALL, 7, only_this=True) is None
    assert find_broker(ALL, 2, only_this=True) == FindBrokerResult("s3:1", is_slave=True)
