"""Complete frames as Java peers send or accept them: read, and written byte for byte."""

import pytest

from rocketmq_remoting.command import Command, SerializeType, decode, encode
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.kv_table import KVTable, decode_kv_table, encode_kv_table
from rocketmq_remoting.registration import (
    RegisterBrokerBody,
    body_crc32,
    decode_register_broker_body,
    encode_register_broker_body,
)
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData, decode_route, encode_route
from rocketmq_remoting.topic_config import TopicConfig
from tests.rocketmq_remoting.frames import FRAMES

JSON, ROCKETMQ = SerializeType.JSON, SerializeType.ROCKETMQ
MEMBER = {"brokerName": "broker-a", "brokerAddr": "192.168.0.1:10911", "clusterName": "DefaultCluster"}
NO_ROUTE = (
    "No topic route info in name server for the topic: TopicTest\n"
    "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)
HEARTBEAT = {"clusterName": "DefaultCluster", "brokerAddr": "192.168.0.1:10911", "brokerName": "broker-a"}
UNREGISTRATION = {**HEARTBEAT, "brokerId": "0"}
REGISTRATION = {
    **MEMBER,
    "haServerAddr": "192.168.0.1:10912",
    "brokerId": "0",
    "compressed": "true",
    "bodyCrc32": "1883839637",
}
PUSH = {"haBrokerAddr": "192.168.0.1:10912", "minBrokerAddr": "192.168.0.1:10911", "minBrokerId": "0"}
MASTER = {"haServerAddr": "192.168.0.1:10912", "masterAddr": "192.168.0.1:10911"}
UNKNOWN = " request type 99999 not supported"
ROUTE = TopicRouteData(
    (BrokerData("DefaultCluster", "broker-a", {0: "192.168.0.1:10911"}),),
    (QueueData("broker-a", 8, 8, 6, 0),),
    {},
)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        pytest.param("E1", Command(105, 1, 0, 373, 0, None, {"topic": "TopicTest"}), id="E1 route request"),
        pytest.param(
            "E2", Command(105, 1, 0, 373, 0, None, {"topic": "TopicTest"}, b"", ROCKETMQ), id="E2 binary"
        ),
        pytest.param("E3", Command(17, 1, 1, 479, 0, NO_ROUTE, None, b"", ROCKETMQ), id="E3 no such topic"),
        pytest.param("E4", Command(0, 1, 1, 479), id="E4 legacy route"),
        pytest.param("E5", Command(0, 1, 1, 479, serialize_type=ROCKETMQ), id="E5 standard route"),
        pytest.param("E6", Command(3, 2, 1, 479, 0, UNKNOWN), id="E6 unknown request code"),
        pytest.param("E7", Command(103, 3, 0, 373, 0, None, REGISTRATION, b"", ROCKETMQ), id="E7 register"),
        pytest.param("E8", Command(0, 4, 1, 479, 0, None, MASTER, b"", ROCKETMQ), id="E8 answer to a slave"),
        pytest.param("E9", Command(904, 5, 2, 479, 0, None, HEARTBEAT, b"", ROCKETMQ), id="E9 heartbeat"),
        pytest.param(
            "E10a",
            Command(322, 6, 0, 373, 0, None, {**MEMBER, "brokerId": "0"}, b"", ROCKETMQ),
            id="E10a query data version",
        ),
        pytest.param(
            "E10b", Command(0, 6, 1, 479, 0, None, {"changed": "false"}, b"", ROCKETMQ), id="E10b its answer"
        ),
        pytest.param("E11", Command(905, 33, 2, 479, 0, None, PUSH), id="E11 push, flag as its header says"),
        pytest.param(
            "E12", Command(104, 7, 0, 479, 3, None, UNREGISTRATION, b"", ROCKETMQ), id="E12 unregister"
        ),
    ],
)
def test_a_worked_example_is_read_and_written(name: str, header: Command) -> None:
    frame = bytes.fromhex(FRAMES[name])
    command = decode(frame[4:])
    assert bare(command) == header
    assert encode(command) == frame


def bare(command: Command) -> Command:
    """The command without its body."""
    return Command(
        command.code,
        command.opaque,
        command.flag,
        command.version,
        command.language,
        command.remark,
        command.ext,
        b"",
        command.serialize_type,
    )


def body_of(name: str) -> bytes:
    return decode(bytes.fromhex(FRAMES[name])[4:]).body


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        pytest.param("E4", Dialect.LEGACY, id="E4 numbers as bare keys"),
        pytest.param("E5", Dialect.STANDARD, id="E5 numbers as quoted keys"),
    ],
)
def test_a_route_is_read_in_both_dialects_and_written_in_the_asked(name: str, dialect: Dialect) -> None:
    assert decode_route(body_of(name)) == ROUTE
    assert encode_route(ROUTE, dialect) == body_of(name)


def test_e7_is_a_compressed_registration_that_we_write_as_java_does() -> None:
    body = body_of("E7")
    topics = {"TopicTest": TopicConfig("TopicTest", 8, 8, 6)}
    registered = RegisterBrokerBody(DataVersion(0, 1700000000000, 1), topics, frozenset(topics))
    assert decode_register_broker_body(body, version=373, compressed=True, now_ms=5) == registered
    assert encode_register_broker_body(registered, version=373, compressed=True) == body
    assert body_crc32(body) == 1883839637


def test_the_same_registration_as_json_has_the_checksum_a_4_8_broker_sends() -> None:
    topics = {"TopicTest": TopicConfig("TopicTest", 8, 8, 6)}
    registered = RegisterBrokerBody(DataVersion(0, 1700000000000, 1), topics, frozenset(topics))
    assert body_crc32(encode_register_broker_body(registered, version=373, compressed=False)) == 1881343981


def test_e8_carries_the_order_table() -> None:
    table = KVTable({"OrderTopic": "broker-a:4;broker-b:4"})
    assert decode_kv_table(body_of("E8")) == table
    assert encode_kv_table(table) == body_of("E8")


def test_e10_asks_for_and_answers_with_a_data_version() -> None:
    version = DataVersion(0, 1700000000000, 1)
    assert decode_data_version(body_of("E10a")) == version
    assert version.encode_4x() == body_of("E10a")
    assert decode_data_version(body_of("E10b")) == version
    assert version.encode() == body_of("E10b")
