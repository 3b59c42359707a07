"""What requests name (worker.named)."""

import json

import pytest

from access.limits import Limits
from access.patterns import Patterns
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from worker.named import BODY_MOST, BROKERS_MOST, named_by


def a_topic(brokers: int, **more: str) -> Command:
    """Queue data of so many."""
    rows = [{"brokerName": f"b-{number}"} | more for number in range(brokers)]
    body = json.dumps({"queueDatas": rows}).encode()
    return Command(RequestCode.REGISTER_TOPIC_IN_NAMESRV, 1, 0, 0, ext={"topic": "t"}, body=body)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        (a_topic(1), True),
        (a_topic(BROKERS_MOST), True),
        (a_topic(BROKERS_MOST + 1), False),
        (a_topic(1, more="x" * BODY_MOST), False),
    ],
    ids=["one", "the most", "more", "long"],
)
def test_a_topic_of_more_brokers_than_are_compared_is_beyond_limits(
    command: Command, *, allowed: bool
) -> None:
    """11,000 names fit into a body that is read, and took seconds with 10 patterns: all other peers waited."""
    assert Limits(brokers=Patterns.of(["b-*"])).allow(named_by(command)) is allowed
    assert Limits(brokers=Patterns.of(["*"])).allow(named_by(command))
    assert not Limits(brokers=Patterns.of(["c-*"])).allow(named_by(command))


def test_the_list_of_a_clusters_topics_is_beyond_limits_of_topics() -> None:
    asked = Command(RequestCode.GET_TOPICS_BY_CLUSTER, 1, 0, 0, ext={"cluster": "c1"})
    assert not Limits(topics=Patterns.of(["o-*"])).allow(named_by(asked))
    assert Limits(clusters=Patterns.of(["c1"])).allow(named_by(asked))
    assert not Limits(clusters=Patterns.of(["c2"])).allow(named_by(asked))
