"""The groups of a client, and what a heartbeat says of them."""

import pytest

from mqns.errors import ConfigError, SubscriptionError
from mqns.heartbeats.groups import ClientGroups, ConsumerGroup
from mqns.heartbeats.subscriptions import sql92
from rocketmq_remoting.heartbeat import (
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)

PUSH = ConsumerGroup(group="cg1", subscriptions={"TopicTest": "TagA || TagB"})


def topics_of(members: ClientGroups, group: str) -> dict[str, str]:
    data = members.heartbeat("c")
    assert data
    (consumer,) = [consumer for consumer in data.consumer_data_set if consumer.group_name == group]
    return {sub.topic: sub.sub_string for sub in consumer.subscription_data_set}


def test_without_groups_there_is_no_heartbeat() -> None:
    assert ClientGroups().heartbeat("c") is None
    assert ClientGroups().topics() == set()


def test_groups_are_listed_by_name() -> None:
    members = ClientGroups()
    members.add_producer("pg2", ["T2"])
    members.add_producer("pg1")
    members.add_consumer(PUSH, 7)
    first = ConsumerGroup(group="cg0", subscriptions={"T0": "*"})
    members.add_consumer(first, 8)
    assert members.heartbeat("c") == HeartbeatData(
        client_id="c",
        consumer_data_set=(first.data(8), PUSH.data(7)),
        heartbeat_fingerprint=0,
        producer_data_set=(ProducerData("pg1"), ProducerData("pg2")),
        without_sub=False,
    )
    assert members.topics() == {"T0", "T2", "TopicTest", "%RETRY%cg0", "%RETRY%cg1"}
    assert (members.producers, members.consumers) == (("pg1", "pg2"), ("cg0", "cg1"))


def test_one_that_shares_messages_and_does_not_pull_gets_its_retry_topic() -> None:
    retry = SubscriptionData(topic="%RETRY%cg1", sub_string="*", sub_version=7)
    assert retry in PUSH.data(7).subscription_data_set
    assert PUSH.data(7).consume_type is ConsumeType.PASSIVELY
    for model, kind, has in [
        (MessageModel.CLUSTERING, ConsumeType.POP, True),
        (MessageModel.CLUSTERING, ConsumeType.ACTIVELY, False),
        (MessageModel.BROADCASTING, ConsumeType.PASSIVELY, False),
    ]:
        data = ConsumerGroup(group="cg1", subscriptions={}, message_model=model, consume_type=kind).data(7)
        assert data.subscription_data_set == ((retry,) if has else ())


def test_subscriptions_change() -> None:
    members = ClientGroups()
    members.add_consumer(PUSH, 7)
    members.subscribe("cg1", "TopicTest", sql92("a > 1"), 8)
    members.subscribe("cg1", "Another", "*", 9)
    assert topics_of(members, "cg1") == {"%RETRY%cg1": "*", "Another": "*", "TopicTest": "a > 1"}
    members.unsubscribe("cg1", "TopicTest")
    members.unsubscribe("cg1", "TopicTest")
    assert topics_of(members, "cg1") == {"%RETRY%cg1": "*", "Another": "*"}
    assert members.topics() == {"%RETRY%cg1", "Another"}


def test_groups_leave_and_come_back() -> None:
    members = ClientGroups()
    members.add_producer("g")
    members.add_consumer(ConsumerGroup(group="g", subscriptions={}), 7)
    assert members.remove_producer("g")
    assert not members.remove_producer("g")
    assert members.remove_consumer("g")
    assert not members.remove_consumer("g")
    assert members.heartbeat("c") is None
    members.add_producer("g")


def test_what_is_there_twice_or_not_at_all_is_an_error() -> None:
    members = ClientGroups()
    members.add_producer("g")
    members.add_consumer(PUSH, 7)
    with pytest.raises(ConfigError, match="'g' is registered already"):
        members.add_producer("g")
    with pytest.raises(ConfigError, match="'cg1' is registered already"):
        members.add_consumer(PUSH, 8)
    with pytest.raises(ConfigError, match="no consumer group 'g'"):
        members.subscribe("g", "T", "*", 8)
    with pytest.raises(SubscriptionError):
        members.add_consumer(ConsumerGroup(group="new", subscriptions={"T": "||"}), 8)
    assert members.consumers == ("cg1",)
