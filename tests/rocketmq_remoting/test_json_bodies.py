"""Bodies in JSON: both dialects, escapes, and what may be missing."""

import msgspec
import pytest

from rocketmq_remoting.cluster import (
    BrokerMemberGroup,
    ClusterInfo,
    decode_broker_member_group,
    decode_cluster_info,
    encode_broker_member_group,
    encode_cluster_info,
)
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.kv_table import KVTable, decode_kv_table, encode_kv_table
from rocketmq_remoting.route import (
    BrokerData,
    QueueData,
    TopicQueueMappingInfo,
    TopicRouteData,
    decode_mapping_info,
    decode_route,
    encode_mapping_info,
    encode_route,
)
from rocketmq_remoting.topic_list import TopicList, decode_topic_list, encode_topic_list

BROKER_ADDRS = {10: "c:3", 0: "a:1", 2: "b:2"}
ROUTE = TopicRouteData(
    (BrokerData("c1", "b1", BROKER_ADDRS, True, "z1"), BrokerData("c1", "b0", {})),
    (QueueData("b1", 8, 4, 6, 1), QueueData("b0", 0, 1, 4, 0)),
    {"b:2": ("f2", "f1"), "a:1": ()},
    "b1:8",
    {"b1": TopicQueueMappingInfo("t", "b1", 12, {10: 1, 2: 0}, "scope", 7, True)},
)


@pytest.mark.parametrize(
    ("dialect", "addrs", "ids"),
    [
        pytest.param(
            Dialect.LEGACY, '{0:"a:1",2:"b:2",10:"c:3"}', "{2:0,10:1}", id="legacy: bare, by number"
        ),
        pytest.param(
            Dialect.STANDARD,
            '{"0":"a:1","10":"c:3","2":"b:2"}',
            '{"10":1,"2":0}',
            id="standard: quoted, sorted as text",
        ),
    ],
)
def test_a_route_is_written_in_its_dialect(dialect: Dialect, addrs: str, ids: str) -> None:
    assert encode_route(ROUTE, dialect).decode() == (
        f'{{"brokerDatas":[{{"brokerAddrs":{addrs},"brokerName":"b1","cluster":"c1","enableActingMaster":true,'
        '"zoneName":"z1"},{"brokerAddrs":{},"brokerName":"b0","cluster":"c1","enableActingMaster":false}],'
        '"filterServerTable":{"a:1":[],"b:2":["f2","f1"]},"orderTopicConf":"b1:8","queueDatas":['
        '{"brokerName":"b1","perm":6,"readQueueNums":8,"topicSysFlag":1,"writeQueueNums":4},'
        '{"brokerName":"b0","perm":4,"readQueueNums":0,"topicSysFlag":0,"writeQueueNums":1}],'
        f'"topicQueueMappingByBroker":{{"b1":{{"bname":"b1","currIdMap":{ids},"dirty":true,"epoch":7,'
        '"scope":"scope","topic":"t","totalQueues":12}}}'
    )
    assert decode_route(encode_route(ROUTE, dialect)) == ROUTE


@pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.name)
def test_an_empty_route_has_its_three_members(dialect: Dialect) -> None:
    empty = TopicRouteData((), (), {})
    assert encode_route(empty, dialect) == b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}'
    assert decode_route(b"{}") == empty
    assert decode_route(b'{"brokerDatas":null,"filterServerTable":null,"queueDatas":null}') == empty


@pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.name)
def test_text_is_escaped_as_5_5_0_does(dialect: Dialect) -> None:
    name = 'q"b\\s/\b\f\n\r\t\x01\x1f\x7f\x80\u2028é主😀'
    written = encode_route(TopicRouteData((BrokerData(name, name, {1: name}),), (), {}), dialect).decode()
    escaped = 'q\\"b\\\\s/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\x80\u2028é主😀'
    assert written.count(f'"{escaped}"') == 3
    assert "\\u" not in written.replace("\\u0001\\u001f", "")


def test_only_the_standard_dialect_is_json_to_others() -> None:
    assert msgspec.json.decode(encode_route(ROUTE, Dialect.STANDARD))
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(encode_route(ROUTE, Dialect.LEGACY))


@pytest.mark.parametrize(
    ("body", "queue_data"),
    [
        pytest.param(
            b'{"brokerName":"b","perm":6,"readQueueNums":8,"topicSynFlag":3,"writeQueueNums":4}',
            QueueData("b", 8, 4, 6, 3),
            id="the flag as 4.8.0 spells it",
        ),
        pytest.param(
            b'{"brokerName":"b","perm":"6","readQueueNums":"8","writeQueueNums":"4"}',
            QueueData("b", 8, 4, 6, 0),
            id="numbers as text",
        ),
        pytest.param(
            b'{"brokerName":"b","perm":null}', QueueData("b", 0, 0, 0, 0), id="nulls and what is missing"
        ),
    ],
)
def test_queue_data_is_read(body: bytes, queue_data: QueueData) -> None:
    assert decode_route(b'{"queueDatas":[%b]}' % body).queue_datas == (queue_data,)


def test_nulls_in_a_route_are_left_out() -> None:
    route = decode_route(
        b'{"brokerDatas":[{"brokerAddrs":{0:null,1:"a:1"},"brokerName":null}],"orderTopicConf":null,'
        b'"filterServerTable":{"a:1":null},"topicQueueMappingByBroker":{"b":null}}'
    )
    assert route == TopicRouteData((BrokerData("", "", {1: "a:1"}),), (), {"a:1": ()}, None, {})


@pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.name)
def test_a_static_topic_is_read_in_both_dialects(dialect: Dialect) -> None:
    info = TopicQueueMappingInfo("t", "b", 4, {0: 0, 3: 1}, epoch=1795233326001)
    assert decode_mapping_info(encode_mapping_info(info, dialect)) == info
    assert decode_mapping_info(b"{}") == TopicQueueMappingInfo("", "", 0, {})


def test_cluster_info_is_always_legacy() -> None:
    info = ClusterInfo({"b1": BrokerData("c1", "b1", {0: "10.0.0.1:10911"})}, {"c1": ("b1", "gone")})
    assert encode_cluster_info(info) == (
        b'{"brokerAddrTable":{"b1":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"b1","cluster":"c1",'
        b'"enableActingMaster":false}},"clusterAddrTable":{"c1":["b1","gone"]}}'
    )
    assert decode_cluster_info(encode_cluster_info(info)) == info
    assert encode_cluster_info(ClusterInfo({}, {})) == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
    assert decode_cluster_info(b'{"clusterAddrTable":{"c1":null}}') == ClusterInfo({}, {"c1": ()})


def test_a_member_group_is_always_legacy() -> None:
    group = BrokerMemberGroup("c1", "b1", {1: "10.0.0.2:10911", 0: "10.0.0.1:10911"})
    assert encode_broker_member_group(group) == (
        b'{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
        b'"brokerName":"b1","cluster":"c1"}}'
    )
    assert decode_broker_member_group(encode_broker_member_group(group)) == group
    assert decode_broker_member_group(b"{}") == BrokerMemberGroup(None, None, {})


@pytest.mark.parametrize(
    ("topics", "body"),
    [
        pytest.param(TopicList(()), b'{"topicList":[]}', id="none"),
        pytest.param(TopicList(("TB", "TA")), b'{"topicList":["TB","TA"]}', id="in the order given"),
        pytest.param(
            TopicList(("c1",), "10.0.0.1:10911"),
            b'{"brokerAddr":"10.0.0.1:10911","topicList":["c1"]}',
            id="with a broker to ask",
        ),
    ],
)
def test_a_topic_list_is_written_and_read(topics: TopicList, body: bytes) -> None:
    assert encode_topic_list(topics) == body
    assert decode_topic_list(body) == topics
    assert decode_topic_list(b'{"topicList":null}') == TopicList(())


def test_a_kv_table_is_written_and_read() -> None:
    table = KVTable({"b": "2", "a": "1;\n"})
    assert encode_kv_table(table) == b'{"table":{"a":"1;\\n","b":"2"}}'
    assert decode_kv_table(encode_kv_table(table)) == table
    assert encode_kv_table(KVTable({})) == b'{"table":{}}'
    assert decode_kv_table(b'{"table":{"a":null,"b":"2"}}') == KVTable({"b": "2"})
    assert decode_kv_table(b'{"table":null}') == KVTable({})


@pytest.mark.parametrize(
    ("body", "version"),
    [
        pytest.param(b'{"counter":1,"timestamp":2}', DataVersion(0, 2, 1), id="4.x"),
        pytest.param(b'{"counter":1,"stateVersion":3,"timestamp":2}', DataVersion(3, 2, 1), id="5.x"),
        pytest.param(b'{"counter":"1","stateVersion":null}', DataVersion(0, 0, 1), id="odd"),
        pytest.param(b"{counter:-9223372036854775808}", DataVersion(0, 0, -(2**63)), id="the least number"),
    ],
)
def test_a_data_version_is_read(body: bytes, version: DataVersion) -> None:
    assert decode_data_version(body) == version
    assert decode_data_version(version.encode()) == version
    assert DataVersion.from_text(version.text()) == version


def test_a_data_version_as_text_is_three_numbers() -> None:
    assert DataVersion(1, 1700000000000, 3).text() == "1:1700000000000:3"
    for text in ("", "1:2", "1:2:3:4", "a:b:c"):
        with pytest.raises(ValueError, match=r"unpack|invalid literal"):
            DataVersion.from_text(text)


@pytest.mark.parametrize(
    ("body", "member"),
    [
        pytest.param(b'{"counter":9223372036854775808}', r"\$\.counter", id="over 64 bits"),
        pytest.param(b'{"timestamp":"now"}', r"\$\.timestamp", id="no number"),
        pytest.param(b"[]", "got `array`", id="an array"),
    ],
)
def test_what_is_wrong_is_named(body: bytes, member: str) -> None:
    with pytest.raises(BodyError, match=member):
        decode_data_version(body)
