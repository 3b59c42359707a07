"""The queues a producer sends to."""

import pytest

from mqns.routes.publish import default_route, publish_info
from mqns.routes.queues import Queues
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from tests.mqns.routes.routes import group, queues, route, static


def numbers(sent_to: Queues) -> str:
    return " ".join(f"{queue.broker_name}{queue.queue_id}" for queue in sent_to)


def test_masters_that_may_be_written_to_by_name() -> None:
    info = publish_info("T", route(queues("b", write=2), queues("a", 9, 1), group("a", 0, 1), group("b", 0)))
    assert numbers(info.queues) == "a0 b0 b1"
    assert info.queues.topic == "T"
    assert not info.is_order_topic


@pytest.mark.parametrize("perm", [0, 1, 4, 5, 8])
def test_no_write_permission_no_queues(perm: int) -> None:
    assert not publish_info("T", route(queues("a", perm=perm), group("a", 0))).queues


@pytest.mark.parametrize("perm", [2, 3, 6, 7, 14])
def test_write_permission_among_others(perm: int) -> None:
    assert len(publish_info("T", route(queues("a", perm=perm), group("a", 0))).queues) == 4


def test_no_broker_or_no_master_no_queues() -> None:
    assert not publish_info("T", route(queues("a"), queues("b"), group("b", 1, 2))).queues


@pytest.mark.parametrize(
    ("conf", "listed"),
    [
        ("a:2;b:1", "a0 a1 b0"),
        ("b:1;a:1", "b0 a0"),
        pytest.param("a:1:2", "a0", id="a third part"),
        pytest.param("a:1;", "a0", id="nothing after a semicolon"),
        pytest.param("a;b:x;c:-1;d:;:;e:1", "e0", id="no numbers"),
        pytest.param("a:\u0663", "", id="a digit that is none of ASCII"),
    ],
)
def test_an_order_configuration_goes_before_all_else(conf: str, listed: str) -> None:
    info = publish_info("T", route(queues("z"), group("z", 0), order=conf))
    assert numbers(info.queues) == listed
    assert info.is_order_topic


@pytest.mark.parametrize("count", ["99999999999999999999", "9" * 5000])
def test_an_order_configuration_with_a_number_that_java_has_not_delays_no_others(count: str) -> None:
    assert len(publish_info("T", route(order=f"a:{count}")).queues) == 2**31 - 1


def test_an_empty_order_configuration_is_none() -> None:
    info = publish_info("T", route(queues("a", write=1), group("a", 0), order=""))
    assert numbers(info.queues) == "a0"
    assert not info.is_order_topic


def test_a_static_topic_has_its_own_queues() -> None:
    a = TopicQueueMappingInfo("T", "a", 3, {0: 0, 1: 1}, epoch=1)
    b = TopicQueueMappingInfo("T", "b", 4, {2: 0}, epoch=2)
    for info in (publish_info("T", static(a, b)), publish_info("T", static(b, a))):
        assert [(queue.broker_name, queue.queue_id) for queue in info.queues] == [
            ("__syslo__global__", number) for number in range(4)
        ]
        assert not info.is_order_topic
    assert numbers(publish_info("T", static(a, order="z:1")).queues) == "z0"
    assert not publish_info("T", static(a, order="")).queues


def test_the_default_topics_route_gives_at_most_so_many_queues() -> None:
    of_default = route(queues("a", read=8, write=8), queues("b", read=2, write=8, perm=7), group("a", 0))
    assert default_route(of_default).queue_datas == (queues("a", 4, 4), queues("b", 2, 2, perm=7))
    assert default_route(of_default, 3).queue_datas == (queues("a", 3, 3), queues("b", 2, 2, perm=7))
    assert default_route(of_default).broker_datas == of_default.broker_datas
