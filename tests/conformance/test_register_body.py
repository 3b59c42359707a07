"""REGISTER_BROKER: checksums, bodies and their layouts (docs/conformance.md, 103-01 to 103-24, 103-58 to 60)."""

import json
import struct
import zlib
from typing import Any

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import SerializeType
from rocketmq_remoting.route import decode_route
from testbed.broker import TB, A, Broker, Topic, as_json, crc
from testbed.eventually import eventually
from testbed.scene import Scene

LINES_4X = ["TA 8 8 6 SINGLE_TAG", "TB 4 4 6 SINGLE_TAG"]
LINES_5X = [line + " {}" for line in LINES_4X]


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def compressed_layout(lines: list[str], tail: bytes = b"") -> bytes:
    """What a compressed body holds, before it is compressed."""
    topics = b"".join(sized(line.encode()) for line in lines)
    return sized(A.data_version()) + struct.pack(">i", len(lines)) + topics + sized(b"[]") + tail


NO_STATIC_TOPICS = struct.pack(">i", 0)


@pytest.mark.conformance("103-01", "103-02", "103-03")
@pytest.mark.parametrize("serialize_type", SerializeType)
def test_a_first_registration(ns: Scene, serialize_type: SerializeType) -> None:
    answer = A.register(ns.k1, serialize_type=serialize_type)
    assert (answer.code, answer.ext or {}, answer.body) == (0, {}, b"")
    assert ns.brokers() == {"broker-a": {0: A.addr}}
    assert ns.clusters() == {"c1": {"broker-a"}}
    assert ns.topics() == {"TA", "TB"}
    assert (ns.queues("TA")["broker-a"].read_queue_nums, ns.queues("TB")["broker-a"].write_queue_nums) == (
        8,
        4,
    )


@pytest.mark.conformance("103-04")
def test_a_wrong_checksum(ns: Scene) -> None:
    answer = A.register(ns.k1, ext={"bodyCrc32": str(int(crc(A.body())) + 1)})
    assert (answer.code, answer.remark, answer.ext) == (1, "crc32 not match", {})
    assert_nothing_is_registered(ns)


def assert_nothing_is_registered(ns: Scene) -> None:
    assert ns.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
    assert ns.topics() == set()


@pytest.mark.conformance("103-05")
@pytest.mark.parametrize("given", ["0", None, "abc"])
def test_a_checksum_that_is_not_checked(ns: Scene, given: str | None) -> None:
    assert A.register(ns.k1, ext={"bodyCrc32": given}).code == 0
    assert ns.topics() == {"TA", "TB"}


@pytest.mark.conformance("103-06")
def test_the_top_bit_of_a_checksum_is_left_out(ns: Scene) -> None:
    body = next(body for n in range(64) if zlib.crc32(body := A.but(counter=n).body()) >> 31)
    assert A.register(ns.k1, body, ext={"bodyCrc32": str(zlib.crc32(body) & 0x7FFFFFFF)}).code == 0
    assert ns.topics() == {"TA", "TB"}


@pytest.mark.conformance("103-07", "103-08", "103-60")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="none", marks=pytest.mark.conformance("103-07")),
        pytest.param(b"{}", id="empty object", marks=pytest.mark.conformance("103-08")),
        pytest.param(
            as_json({"filterServerList": [], "topicConfigSerializeWrapper": None}),
            id="wrapper null",
            marks=pytest.mark.conformance("103-60"),
        ),
        pytest.param(
            as_json(
                {
                    "filterServerList": [],
                    "topicConfigSerializeWrapper": {
                        "dataVersion": {"counter": 1, "timestamp": 1000},
                        "topicConfigTable": None,
                    },
                }
            ),
            id="topic table null",
            marks=pytest.mark.conformance("103-60"),
        ),
    ],
)
def test_a_body_without_topics_registers_the_broker(ns: Scene, body: bytes) -> None:
    assert A.register(ns.k1, body, ext={"bodyCrc32": "0"}).code == 0
    assert ns.brokers() == {"broker-a": {0: A.addr}}
    assert ns.topics() == set()


TOPIC_NULL = as_json(
    {
        "topicConfigSerializeWrapper": {
            "dataVersion": {"counter": 1, "timestamp": 1000},
            "topicConfigTable": {"TA": None, "TB": TB.members()},
        }
    }
)


@pytest.mark.parametrize(
    ("body", "compressed"),
    [
        pytest.param(b"not json", "false", id="no JSON", marks=pytest.mark.conformance("103-09")),
        pytest.param(A.body() + b"x", "false", id="garbage behind", marks=pytest.mark.conformance("103-10")),
        pytest.param(TOPIC_NULL, "false", id="topic null", marks=pytest.mark.conformance("103-11")),
        pytest.param(
            A.body().replace(b'"TB"', b'"T\xff"'),
            "false",
            id="no UTF-8",
            marks=pytest.mark.conformance("103-70"),
        ),
        pytest.param(
            zlib.compress(compressed_layout(LINES_4X), wbits=-15),
            "true",
            id="raw deflate",
            marks=pytest.mark.conformance("103-19"),
        ),
        pytest.param(A.body(), "true", id="not compressed", marks=pytest.mark.conformance("103-19")),
    ],
)
def test_a_body_that_cannot_be_read(ns: Scene, body: bytes, compressed: str) -> None:
    answer = A.register(ns.k1, body, ext={"compressed": compressed})
    assert answer.code == 1
    assert "Failed to decode RegisterBrokerBody" in (answer.remark or "")
    assert_nothing_is_registered(ns)


@pytest.mark.conformance("103-12")
def test_a_topic_without_queues_and_permission(ns: Scene) -> None:
    body = wrapped({"TA": {"topicName": "TA"}, "TB": TB.members()})
    assert A.register(ns.k1, body).code == 0
    queue_data = ns.queues("TA")["broker-a"]
    assert (queue_data.read_queue_nums, queue_data.write_queue_nums, queue_data.perm) == (16, 16, 6)


def wrapped(table: dict[str, Any]) -> bytes:
    """A registration of broker-a's with this topic table."""
    version = json.loads(A.data_version())
    wrapper = {"dataVersion": version, "topicConfigTable": table}
    return as_json({"filterServerList": [], "topicConfigSerializeWrapper": wrapper})


@pytest.mark.conformance("103-13")
def test_a_topic_is_called_as_its_config_says(ns: Scene) -> None:
    assert A.register(ns.k1, wrapped({"X": Topic("Y").members(), "TB": TB.members()})).code == 0
    assert ns.topics() == {"Y", "TB"}


@pytest.mark.conformance("103-68")
@pytest.mark.parametrize("named", [{}, {"topicName": None}], ids=["no topicName", "null"])
def test_a_topic_without_a_name_has_that_of_its_key(ns: Scene, named: dict[str, None]) -> None:
    assert A.register(ns.k1, wrapped({"X": named | {"perm": 4}, "TB": TB.members()})).code == 0
    assert ns.topics() == {"X", "TB"}
    assert ns.queues("X")["broker-a"].perm == 4


@pytest.mark.conformance("103-14")
def test_a_compressed_body_of_4_8(ns: Scene) -> None:
    registered = ns.f1()
    lines = ["TopicTest 8 8 6 SINGLE_TAG"]
    body = zlib.compress(compressed_layout(lines).replace(b'"counter":1', b'"counter":2'), 9)
    assert registered.register(ns.k1, body, ext={"compressed": "true"}, version=373).code == 0
    queue_data = ns.queues("TopicTest")["broker-a"]
    assert (queue_data.read_queue_nums, queue_data.write_queue_nums) == (8, 8)
    assert (queue_data.perm, queue_data.topic_sys_flag) == (6, 0)


@pytest.mark.conformance("103-15")
def test_a_compressed_body_of_5_3(ns: Scene) -> None:
    info = as_json(
        {
            "bname": "broker-a",
            "currIdMap": {"0": 0},
            "epoch": 1,
            "topic": "TA",
            "totalQueues": 1,
            "scope": "__global__",
        }
    )
    body = zlib.compress(compressed_layout(LINES_5X, struct.pack(">i", 1) + sized(info)))
    assert A.register(ns.k1, body, ext={"compressed": "true"}, version=479).code == 0
    assert ns.topics() == {"TA", "TB"}
    mappings = ns.route("TA").topic_queue_mapping_by_broker
    assert mappings is not None
    assert mappings["broker-a"].curr_id_map == {0: 0}


@pytest.mark.conformance("103-17", "103-18")
@pytest.mark.parametrize(
    ("tail", "version"),
    [
        pytest.param(b"", 479, id="5.x without static topics", marks=pytest.mark.conformance("103-17")),
        pytest.param(b"more", 373, id="4.x with more", marks=pytest.mark.conformance("103-18")),
        pytest.param(
            NO_STATIC_TOPICS, 373, id="4.x with static topics", marks=pytest.mark.conformance("103-18")
        ),
    ],
)
def test_what_may_follow_in_a_compressed_body(ns: Scene, tail: bytes, version: int) -> None:
    body = zlib.compress(compressed_layout(LINES_5X, tail))
    assert A.register(ns.k1, body, ext={"compressed": "true"}, version=version).code == 0
    assert ns.topics() == {"TA", "TB"}
    assert ns.route("TA").topic_queue_mapping_by_broker is None


@pytest.mark.conformance("103-20")
def test_a_compressed_body_whose_header_says_it_is_not(ns: Scene) -> None:
    body = zlib.compress(compressed_layout(LINES_5X, NO_STATIC_TOPICS), 9)
    assert A.register(ns.k1, body, ext={"compressed": "false"}, version=479).code == 0
    assert ns.topics() == {"TA", "TB"}


FILTERS = ("127.10.0.1:3000",)


@pytest.mark.parametrize(
    ("version", "body", "topics", "filters"),
    [
        pytest.param(
            36,
            as_json(A.wrapper()),
            {"TA", "TB"},
            False,
            id="wrapper from before 3.0.11",
            marks=pytest.mark.conformance("103-21"),
        ),
        pytest.param(
            36,
            A.but(filters=FILTERS).body(),
            set(),
            False,
            id="body from before 3.0.11",
            marks=pytest.mark.conformance("103-23"),
        ),
        pytest.param(
            37,
            A.but(filters=FILTERS).body(),
            {"TA", "TB"},
            True,
            id="body from 3.0.11",
            marks=pytest.mark.conformance("103-22"),
        ),
        pytest.param(
            700,
            A.but(filters=FILTERS).body(),
            {"TA", "TB"},
            True,
            id="body from the future",
            marks=pytest.mark.conformance("103-24"),
        ),
    ],
)
def test_the_layout_follows_the_version(
    ns: Scene, version: int, body: bytes, topics: set[str], filters: bool
) -> None:
    assert A.register(ns.k1, body, version=version).code == 0
    assert ns.brokers() == {"broker-a": {0: A.addr}}
    assert ns.topics() == topics
    if topics:
        assert ns.route("TA").filter_server_table == ({A.addr: FILTERS} if filters else {})


@pytest.mark.conformance("103-69")
@pytest.mark.parametrize(("text", "servers"), [("f:1", {A.addr: ("f:1",)}), ("", {})], ids=["text", "empty"])
def test_filter_servers_that_are_a_text(ns: Scene, text: str, servers: dict[str, tuple[str, ...]]) -> None:
    assert ns.f1(filters=FILTERS).register(ns.k1, as_json({"filterServerList": text})).code == 0
    assert ns.route("TA").filter_server_table == servers


def test_a_wrapper_from_before_3_0_11_has_no_static_topics(ns: Scene) -> None:
    broker = A.but(more_wrapper={"topicQueueMappingInfoMap": {"TA": {"bname": "broker-a", "topic": "TA"}}})
    assert A.register(ns.k1, as_json(broker.wrapper()), version=36).code == 0
    assert ns.route("TA").topic_queue_mapping_by_broker is None


@pytest.mark.conformance("103-24")
def test_a_compressed_body_from_the_future_is_one_of_5_x(ns: Scene) -> None:
    body = zlib.compress(compressed_layout(LINES_5X, NO_STATIC_TOPICS))
    assert A.register(ns.k1, body, ext={"compressed": "true"}, version=700).code == 0
    assert ns.topics() == {"TA", "TB"}


@pytest.mark.conformance("103-57")
def test_a_oneway_registration(ns: Scene) -> None:
    body = A.body()
    ns.k1.send_oneway(RequestCode.REGISTER_BROKER, A.ext(body), body)
    eventually(lambda: ns.topics() == {"TA", "TB"})
    assert ns.k1.silent()


@pytest.mark.conformance("103-58")
@pytest.mark.parametrize("given", [None, "abc"])
def test_a_registration_without_broker_id(ns: Scene, given: str | None) -> None:
    assert A.register(ns.k1, ext={"brokerId": given}).code == 1
    assert_nothing_is_registered(ns)


@pytest.mark.conformance("103-59")
@pytest.mark.parametrize("field", ["brokerName", "brokerAddr", "clusterName"])
def test_a_registration_without_a_name(ns: Scene, field: str) -> None:
    answer = A.register(ns.k1, ext={field: None})
    assert answer.code == 1
    assert field in (answer.remark or "")
    assert_nothing_is_registered(ns)


@pytest.mark.conformance("103-65")
def test_static_topics_with_unquoted_queue_ids(ns: Scene) -> None:
    info = (
        b'{"bname":"broker-a","currIdMap":{0:0,1:1},"dirty":false,"epoch":1,"scope":"__global__",'
        b'"topic":"TA","totalQueues":2}'
    )
    body = A.but(acting=False, more_wrapper={"topicQueueMappingInfoMap": {"TA": "?"}}).body()
    body = body.replace(b'"?"', info)
    assert Broker(acting=False).register(ns.k1, body, version=479).code == 0
    answer = ns.route_answer("TA", version=479)
    mappings = decode_route(answer.body).topic_queue_mapping_by_broker
    assert mappings is not None
    assert mappings["broker-a"].curr_id_map == {0: 0, 1: 1}
    assert (mappings["broker-a"].topic, mappings["broker-a"].total_queues) == ("TA", 2)
