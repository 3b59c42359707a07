"""Heartbeats of clients: byte for byte as Java's, and the fingerprint of 5.x."""

from itertools import permutations, product

import msgspec
import pytest
from msgspec.structs import replace

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
    decode_heartbeat,
    encode_heartbeat,
    fingerprint,
    without_subscriptions,
)
from rocketmq_remoting.version import V5_0_0
from tests.rocketmq_remoting.golden import recorded, requests

BODIES = sorted({command.body for command in requests(RequestCode.HEART_BEAT)}, key=len)
TAGS = SubscriptionData(
    topic="TopicTest",
    sub_string="TagA || TagB",
    tags_set=("TagA", "TagB"),
    code_set=(2598919, 2598920),
    sub_version=1700000000000,
)
GROUP = ConsumerData(
    group_name="cg1",
    consume_type=ConsumeType.PASSIVELY,
    message_model=MessageModel.CLUSTERING,
    consume_from_where=ConsumeFromWhere.LAST_OFFSET,
    subscription_data_set=(TAGS,),
)
DATA = HeartbeatData(
    client_id="192.168.0.5@12345",
    consumer_data_set=(GROUP,),
    producer_data_set=(ProducerData("CLIENT_INNER_PRODUCER"), ProducerData("pg1")),
)


def test_recorded_heartbeats_are_written_byte_for_byte() -> None:
    assert len(BODIES) > 20
    for body in BODIES:
        assert encode_heartbeat(decode_heartbeat(body)) == body


def test_what_is_recorded_has_every_kind_of_consumer() -> None:
    consumers = {consumer for body in BODIES for consumer in decode_heartbeat(body).consumer_data_set}
    assert {(c.consume_type, c.message_model) for c in consumers} == {
        (ConsumeType.PASSIVELY, MessageModel.CLUSTERING),
        (ConsumeType.PASSIVELY, MessageModel.BROADCASTING),
        (ConsumeType.ACTIVELY, MessageModel.CLUSTERING),
    }
    assert {sub.expression_type for c in consumers for sub in c.subscription_data_set} == {"TAG", "SQL92"}


def test_only_5_x_sends_fingerprint_and_short_form() -> None:
    for command in requests(RequestCode.HEART_BEAT):
        data = decode_heartbeat(command.body)
        assert (data.heartbeat_fingerprint is None) == (data.without_sub is None)
        assert (data.without_sub is None) == (command.version < V5_0_0)


def test_a_heartbeat_is_written_as_4_x_does() -> None:
    assert encode_heartbeat(DATA) == (
        b'{"clientID":"192.168.0.5@12345","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
        b'"consumeType":"CONSUME_PASSIVELY","groupName":"cg1","messageModel":"CLUSTERING",'
        b'"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG",'
        b'"subString":"TagA || TagB","subVersion":1700000000000,"tagsSet":["TagA","TagB"],'
        b'"topic":"TopicTest"}],"unitMode":false}],'
        b'"producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"},{"groupName":"pg1"}]}'
    )


def test_empty_sets_are_written() -> None:
    empty = HeartbeatData(client_id="c", consumer_data_set=(), producer_data_set=())
    assert encode_heartbeat(empty) == b'{"clientID":"c","consumerDataSet":[],"producerDataSet":[]}'
    v5 = replace(empty, heartbeat_fingerprint=0, without_sub=False)
    assert encode_heartbeat(v5) == (
        b'{"clientID":"c","consumerDataSet":[],"heartbeatFingerprint":0,"producerDataSet":[],"withoutSub":false}'
    )


def test_a_fingerprint_is_the_one_java_sends() -> None:
    """Java's own depends on the order of its hash tables, which is another in each beat: one order gives it."""
    checked = 0
    for body in BODIES:
        data = decode_heartbeat(body)
        if not data.heartbeat_fingerprint or data.without_sub:
            continue
        orders = product(permutations(data.producer_data_set), permutations(data.consumer_data_set))
        possible = {fingerprint(replace(data, producer_data_set=p, consumer_data_set=c)) for p, c in orders}
        assert data.heartbeat_fingerprint in possible
        checked += len(possible) == 1
    assert checked


def test_a_fingerprint_tells_groups_and_subscriptions_apart_and_nothing_else() -> None:
    first = fingerprint(DATA)
    later = replace(GROUP, subscription_data_set=(replace(TAGS, sub_version=1),))
    assert fingerprint(replace(DATA, consumer_data_set=(later,), client_id="another")) == first
    assert fingerprint(replace(DATA, heartbeat_fingerprint=7, without_sub=True)) == first
    other = replace(GROUP, subscription_data_set=(replace(TAGS, sub_string="*"),))
    assert fingerprint(replace(DATA, consumer_data_set=(other,))) != first
    assert fingerprint(replace(DATA, producer_data_set=())) != first


def test_the_short_form_is_javas() -> None:
    short = [body for body in BODIES if decode_heartbeat(body).without_sub]
    assert short
    for body in short:
        data = decode_heartbeat(body)
        assert encode_heartbeat(without_subscriptions(data)) == body
    assert without_subscriptions(DATA).consumer_data_set == (replace(GROUP, subscription_data_set=()),)
    assert without_subscriptions(DATA).producer_data_set == DATA.producer_data_set


def test_brokers_answer_with_their_version_and_whether_they_know_the_short_form() -> None:
    for name, version, ext in [
        ("broker-4.9.7_clients", 407, None),
        ("broker-5.5.0_clients", 513, {"IS_SUPPORT_HEART_BEAT_V2"}),
    ]:
        answers = [
            r.command
            for r in recorded(name)
            if r.request and r.command.is_response and r.request.code == RequestCode.HEART_BEAT
        ]
        assert answers
        for answer in answers:
            assert (answer.code, answer.version, answer.body) == (0, version, b"")
            assert answer.ext is None if ext is None else ext <= set(answer.ext or ())


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"clientID":1}', b"[]", b'{"clientID":"c","consumerDataSet":[{}]}']
)
def test_what_is_no_heartbeat_is_refused(body: bytes) -> None:
    with pytest.raises(BodyError):
        decode_heartbeat(body)


def test_enums_are_written_as_java_names_them() -> None:
    assert [kind.value for kind in ConsumeType] == ["CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"]
    assert [model.value for model in MessageModel] == ["CLUSTERING", "BROADCASTING"]
    assert [where.value for where in ConsumeFromWhere] == [
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ]
    assert msgspec.json.encode(ConsumeType.POP) == b'"CONSUME_POP"'
