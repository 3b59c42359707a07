"""Bodies of REGISTER_BROKER: every layout, and the places where we are kinder than Java."""

import json
import struct
import time
import tracemalloc
import zlib

import pytest

from rocketmq_remoting.cooperative import run_to_completion
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.inflate import inflate_cooperatively
from rocketmq_remoting.registration import (
    RegisterBrokerBody,
    body_crc32,
    decode_register_broker_body,
    encode_register_broker_body,
)
from rocketmq_remoting.registration_zlib import INFLATED_MAX_LENGTH
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo

NOW = 1_800_000_000_000
V2, V4_8, V4_9, V5 = 36, 373, 407, 513
VERSION = DataVersion(0, 1000, 1)
TA = TopicConfig("TA", 8, 8, 6)
TOPICS = {"TA": TA, "TB": TopicConfig("TB", 4, 2, 4)}
STATIC = {"S": TopicQueueMappingInfo("S", "broker-a", 4, {0: 0, 3: 1}, epoch=5)}


def read(body: bytes, version: int = V5, *, compressed: bool = False) -> RegisterBrokerBody:
    return decode_register_broker_body(body, version=version, compressed=compressed, now_ms=NOW)


def registered(topics: dict[str, TopicConfig], **members: object) -> RegisterBrokerBody:
    return RegisterBrokerBody(VERSION, topics, frozenset(topics), **members)  # type: ignore[arg-type]


def wrapper(**members: object) -> bytes:
    """A whole body around a wrapper."""
    return json.dumps(
        {"topicConfigSerializeWrapper": {"dataVersion": {"timestamp": 1000, "counter": 1}, **members}}
    ).encode()


def topic_table(**members: object) -> bytes:
    return wrapper(topicConfigTable={"TA": {"topicName": "TA", **members}})


def sized(part: bytes) -> bytes:
    return struct.pack(">i", len(part)) + part


def stream(
    *lines: str, version: bytes = VERSION.encode(), filters: bytes = b"[]", tail: bytes = b""
) -> bytes:
    """The content of a compressed body."""
    topics = b"".join(sized(line.encode()) for line in lines)
    return sized(version) + struct.pack(">i", len(lines)) + topics + sized(filters) + tail


@pytest.mark.parametrize(
    ("body", "version", "compressed"),
    [
        pytest.param(registered(TOPICS), V4_8, False, id="JSON 4.8"),
        pytest.param(
            registered(TOPICS, filter_servers=("f1", "f2")), V4_8, False, id="JSON with filter servers"
        ),
        pytest.param(registered(TOPICS, filter_servers=None), V4_8, False, id="JSON without filter servers"),
        pytest.param(
            registered(TOPICS, mapping_infos=STATIC, mapping_data_version=DataVersion(0, 7, 0)),
            V5,
            False,
            id="JSON 5.x with static topics",
        ),
        pytest.param(registered(TOPICS), V4_8, True, id="zlib 4.8"),
        pytest.param(registered(TOPICS, filter_servers=None), V4_8, True, id="zlib without filter servers"),
        pytest.param(registered(TOPICS, mapping_infos=STATIC), V5, True, id="zlib 5.x with static topics"),
        pytest.param(registered({}), V5, True, id="zlib without topics"),
        pytest.param(
            registered(TOPICS, filter_servers=None), V2, False, id="the wrapper alone, before 3.0.11"
        ),
    ],
)
def test_a_registration_survives_the_round_trip(
    body: RegisterBrokerBody, version: int, compressed: bool
) -> None:
    assert (
        read(
            encode_register_broker_body(body, version=version, compressed=compressed),
            version,
            compressed=compressed,
        )
        == body
    )


def test_a_registration_is_written_as_brokers_write_it() -> None:
    body = registered({"TA": TA}, mapping_infos=STATIC, mapping_data_version=DataVersion(0, 7, 0))
    topic = (
        b'"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TA",'
        b'"topicSysFlag":0,"writeQueueNums":8}'
    )
    assert encode_register_broker_body(body, version=V4_8, compressed=False) == (
        b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":1000},'
        b'"topicConfigTable":{"TA":{' + topic + b"}}}"
    )
    assert encode_register_broker_body(body, version=V5, compressed=False) == (
        b'{"filterServerList":[],"topicConfigSerializeWrapper":{'
        b'"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1000},'
        b'"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":7},'
        b'"topicConfigTable":{"TA":{"attributes":{},' + topic + b'},"topicQueueMappingDetailMap":{},'
        b'"topicQueueMappingInfoMap":{"S":{"bname":"broker-a","currIdMap":{0:0,3:1},"dirty":false,"epoch":5,'
        b'"scope":"__global__","topic":"S","totalQueues":4}}}}'
    )
    assert zlib.decompress(encode_register_broker_body(body, version=V4_8, compressed=True)) == stream(
        "TA 8 8 6 SINGLE_TAG", version=VERSION.encode_4x()
    )


@pytest.mark.parametrize(
    ("version", "filter_servers"),
    [
        pytest.param(V4_8, (), id="4.8: filter servers go"),
        pytest.param(V2, None, id="before 3.0.11: they stay"),
    ],
)
def test_no_body_is_a_broker_without_topics(version: int, filter_servers: tuple[str, ...] | None) -> None:
    assert read(b"", version) == RegisterBrokerBody(DataVersion(), filter_servers=filter_servers)


def test_before_3_0_11_the_body_is_the_wrapper_and_never_compressed() -> None:
    """A whole body from such a peer is read, and has no topics."""
    alone = b'{"dataVersion":{"timestamp":1000,"counter":1},"topicConfigTable":{"TA":{"topicName":"TA"}}}'
    assert read(alone, V2, compressed=True).topics == {"TA": TopicConfig("TA")}
    assert read(wrapper(topicConfigTable={"TA": {"topicName": "TA"}}), 1).topics == {}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"{}", RegisterBrokerBody(DataVersion(0, NOW, 0)), id="an empty object"),
        pytest.param(
            b'{"filterServerList":null,"topicConfigSerializeWrapper":null}',
            RegisterBrokerBody(DataVersion(0, NOW, 0), filter_servers=None),
            id="nulls",
        ),
        pytest.param(wrapper(topicConfigTable=None), registered({}), id="no topic table"),
        pytest.param(
            b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":3}}}',
            RegisterBrokerBody(DataVersion(0, NOW, 3)),
            id="no timestamp",
        ),
        pytest.param(
            b'{"topicConfigSerializeWrapper":{"dataVersion":null}}',
            RegisterBrokerBody(DataVersion(0, NOW, 0)),
            id="no data version",
        ),
        pytest.param(
            wrapper(topicConfigTable={"X": {"topicName": "Y"}}),
            RegisterBrokerBody(VERSION, {"Y": TopicConfig("Y")}, frozenset({"X"})),
            id="the name inside counts, the key is kept",
        ),
        pytest.param(
            wrapper(
                topicConfigTable={"X": {"topicName": "Y", "perm": 4}, "Z": {"topicName": "Y", "perm": 2}}
            ),
            RegisterBrokerBody(VERSION, {"Y": TopicConfig("Y", perm=2)}, frozenset({"X", "Z"})),
            id="the last of equal names",
        ),
        pytest.param(
            wrapper(topicConfigTable={"X": {"perm": 4}, "Y": {"topicName": None}, "Z": {"topicName": "Z"}}),
            registered({"X": TopicConfig("X", perm=4), "Y": TopicConfig("Y"), "Z": TopicConfig("Z")}),
            id="the key of a topic without a name",
        ),
        pytest.param(
            b'{"filterServerList":"f1"}',
            RegisterBrokerBody(DataVersion(0, NOW, 0), filter_servers=("f1",)),
            id="a text is one filter server",
        ),
        pytest.param(
            b'{"filterServerList":""}',
            RegisterBrokerBody(DataVersion(0, NOW, 0), filter_servers=()),
            id="an empty text is no filter server",
        ),
        pytest.param(
            wrapper(
                topicQueueMappingInfoMap={"S": {"topic": "S", "bname": "b", "currIdMap": {"0": 1}}, "N": None}
            ),
            registered({}, mapping_infos={"S": TopicQueueMappingInfo("S", "b", 0, {0: 1})}),
            id="static topics with quoted keys, and a null",
        ),
    ],
)
def test_what_a_body_leaves_open_has_its_default(body: bytes, expected: RegisterBrokerBody) -> None:
    assert read(body) == expected


@pytest.mark.parametrize(
    ("members", "topic"),
    [
        pytest.param({}, TopicConfig("TA", 16, 16, 6, 0), id="nothing but the name"),
        pytest.param({"perm": "4", "readQueueNums": "2"}, TopicConfig("TA", 2, perm=4), id="numbers as text"),
        pytest.param({"topicFilterType": 1}, TopicConfig("TA"), id="filter type by ordinal"),
        pytest.param(
            {"topicFilterType": "X"}, TopicConfig("TA", topic_filter_type="X"), id="unknown filter type"
        ),
        pytest.param(
            {"topicFilterType": None, "order": None}, TopicConfig("TA"), id="nulls that do not matter"
        ),
        pytest.param({"perm": None}, TopicConfig("TA", perm=0), id="a null number, as 5.5.0 reads it"),
        pytest.param(
            {"order": True, "attributes": {"+a": "b"}}, TopicConfig("TA", order=True), id="what is not kept"
        ),
    ],
)
def test_a_topic_is_read(members: dict[str, object], topic: TopicConfig) -> None:
    assert read(topic_table(**members)).topics == {"TA": topic}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[]", id="an array"),
        pytest.param(b"null", id="null"),
        pytest.param(b"  ", id="blanks"),
        pytest.param(b"{} x", id="text behind it"),
        pytest.param(b'{"filterServerList":[', id="cut off"),
        pytest.param(b'{"filterServerList":12}', id="filter servers no list"),
        pytest.param(b'{"filterServerList":[null]}', id="a null filter server"),
        pytest.param(b'{"filterServerList":["f\xff"]}', id="no UTF-8"),
        pytest.param(wrapper(topicConfigTable={"TA": None}), id="a null topic"),
        pytest.param(wrapper(topicConfigTable=[]), id="topics no table"),
        pytest.param(topic_table(perm="rw"), id="perm no number"),
        pytest.param(topic_table(perm=2**31), id="perm over 32 bits"),
        pytest.param(wrapper(dataVersion={"timestamp": "x"}), id="timestamp no number"),
    ],
)
@pytest.mark.parametrize("version", [V4_8, V5])
def test_a_body_that_cannot_be_read_is_refused_in_one_line(body: bytes, version: int) -> None:
    with pytest.raises(BodyError) as refused:
        read(body, version)
    assert len(str(refused.value).splitlines()) == 1


def test_what_is_wrong_with_a_topic_is_named() -> None:
    with pytest.raises(BodyError, match=r"topicConfigTable\[\.\.\.\]\.perm"):
        read(topic_table(perm="rw"))


@pytest.mark.parametrize(
    ("content", "version", "expected"),
    [
        pytest.param(stream("TA 8 8 6 SINGLE_TAG"), V4_8, registered({"TA": TA}), id="five fields"),
        pytest.param(stream('TA 8 8 6 SINGLE_TAG {"a":"b c"}'), V5, registered({"TA": TA}), id="attributes"),
        pytest.param(stream("TA 8 8 6 SINGLE_TAG {oops"), V4_8, registered({"TA": TA}), id="odd attributes"),
        pytest.param(
            stream("TA 1 1 6 SINGLE_TAG", "TA 8 8 6 SINGLE_TAG"),
            V4_8,
            registered({"TA": TA}),
            id="last of equal names",
        ),
        pytest.param(
            stream(filters=b'["f1"]'), V4_8, registered({}, filter_servers=("f1",)), id="filter servers"
        ),
        pytest.param(
            stream(filters=b'"f1"'),
            V4_8,
            registered({}, filter_servers=("f1",)),
            id="a filter server as text",
        ),
        pytest.param(stream(), V5, registered({}), id="5.x without its static topics"),
        pytest.param(stream(tail=bytes(4)), V5, registered({}), id="5.x without static topics"),
        pytest.param(stream(tail=b"left over"), V4_8, registered({}), id="4.x with bytes left over"),
        pytest.param(
            stream(
                tail=struct.pack(">i", 1)
                + sized(b'{"topic":"S","bname":"b","currIdMap":{0:1}}')
                + b"left over"
            ),
            V5,
            registered({}, mapping_infos={"S": TopicQueueMappingInfo("S", "b", 0, {0: 1})}),
            id="static topics with bare keys",
        ),
        pytest.param(
            stream(version=b"{}"), V4_8, RegisterBrokerBody(DataVersion(0, NOW, 0)), id="no version"
        ),
    ],
)
@pytest.mark.parametrize("flagged", [True, False], ids=["compressed=true", "compressed=false"])
@pytest.mark.parametrize("level", [1, 9])
def test_a_compressed_body_is_read_whether_its_header_says_so_or_not(
    content: bytes, version: int, expected: RegisterBrokerBody, flagged: bool, level: int
) -> None:
    assert read(zlib.compress(content, level), version, compressed=flagged) == expected


WHOLE = zlib.compress(stream("TA 8 8 6 SINGLE_TAG"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="JSON"),
        pytest.param(b"\x1f\x8b" + bytes(20), id="gzip"),
        pytest.param(zlib.compress(stream())[2:-4], id="raw deflate"),
        pytest.param(WHOLE[:-1], id="cut off"),
        pytest.param(WHOLE[:-4] + b"oops", id="wrong checksum"),
        pytest.param(zlib.compress(b""), id="empty"),
        pytest.param(zlib.compress(stream()[:-1]), id="content cut off"),
        pytest.param(zlib.compress(struct.pack(">i", -1)), id="negative length"),
        pytest.param(zlib.compress(sized(b"{}") + struct.pack(">i", -1)), id="negative count"),
        pytest.param(zlib.compress(sized(b"{}") + struct.pack(">i", 2**31 - 1)), id="count beyond the end"),
        pytest.param(zlib.compress(struct.pack(">i", 2**31 - 1) + b"{}"), id="length beyond the end"),
        pytest.param(zlib.compress(stream("TA 8 8 6")), id="four fields"),
        pytest.param(zlib.compress(stream("TA 8 8 rw SINGLE_TAG")), id="perm no number"),
        pytest.param(zlib.compress(stream("TA 8 8 2147483648 SINGLE_TAG")), id="perm over 32 bits"),
        pytest.param(zlib.compress(stream(filters=b"{}")), id="filter servers no list"),
        pytest.param(zlib.compress(stream(tail=struct.pack(">i", 1))), id="static topic missing"),
        pytest.param(zlib.compress(stream(tail=b"\x00")), id="half a static topic count"),
    ],
)
def test_a_compressed_body_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(BodyError):
        read(body, V5, compressed=True)


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        pytest.param(INFLATED_MAX_LENGTH, "dataVersion", id="as much as allowed is inflated"),
        pytest.param(INFLATED_MAX_LENGTH + 1, "more than", id="one byte more is not"),
        pytest.param(100_000_000, "more than", id="a bomb"),
    ],
)
def test_inflating_is_bounded(size: int, reason: str) -> None:
    bomb = zlib.compress(b"\xff" * size, 1)
    began = time.process_time()
    with pytest.raises(BodyError, match=reason):
        read(bomb, compressed=True)
    assert time.process_time() - began < 2


def test_no_more_is_inflated_than_allowed() -> None:
    bomb = zlib.compress(bytes(10_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(BodyError, match="more than 1000 bytes"):
            run_to_completion(inflate_cooperatively(bomb, 1000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_checksum_has_no_sign() -> None:
    assert body_crc32(b"") == 0
    assert zlib.crc32(b"a") >= 2**31
    assert body_crc32(b"a") == zlib.crc32(b"a") - 2**31
