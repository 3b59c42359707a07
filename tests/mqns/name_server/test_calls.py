"""Requests as RocketMQ sends them, and answers as it gives them: measured by the recorded frames."""

from inspect import isfunction
from pathlib import Path

import pytest

from mqns.errors import ResponseError
from mqns.name_server import NameServerClient, calls
from mqns.name_server.calls import BrokerIdentity, QueryDataVersionResult, RegisterBrokerResult
from mqns.remoting.call import Call
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.kv_table import KVTable
from rocketmq_remoting.properties import parse_properties
from rocketmq_remoting.route import decode_route
from rocketmq_remoting.topic_list import TopicList
from tests.rocketmq_remoting.golden import NAMES, recorded

ZONE_NAME = "__ZONE_NAME"
A = "127.0.0.1:9876"
PAGE = Path(__file__).parents[3] / "docs" / "client.md"


def _remade(code: int, ext: dict[str, str], body: bytes) -> Request:
    """The request that the function for this code makes of the values in a recorded one."""
    match RequestCode(code):
        case RequestCode.PUT_KV_CONFIG:
            call: Call[object] = calls.put_kv_config(ext["namespace"], ext["key"], ext["value"])
        case RequestCode.GET_KV_CONFIG:
            call = calls.get_kv_config(ext["namespace"], ext["key"])
        case RequestCode.DELETE_KV_CONFIG:
            call = calls.delete_kv_config(ext["namespace"], ext["key"])
        case RequestCode.REGISTER_BROKER:
            acting, timeout = ext.get("enableActingMaster"), ext.get("heartbeatTimeoutMillis")
            call = calls.register_broker(
                _identity(ext),
                body,
                ha_server_addr=ext["haServerAddr"],
                compressed=ext["compressed"] == "true",
                enable_acting_master=None if acting is None else acting == "true",
                heartbeat_timeout_ms=None if timeout is None else int(timeout),
            )
        case RequestCode.UNREGISTER_BROKER:
            call = calls.unregister_broker(_identity(ext))
        case RequestCode.GET_ROUTEINFO_BY_TOPIC:
            call = calls.get_route(ext["topic"])
        case RequestCode.GET_BROKER_CLUSTER_INFO:
            call = calls.get_cluster_info()
        case RequestCode.WIPE_WRITE_PERM_OF_BROKER:
            call = calls.wipe_write_perm(ext["brokerName"])
        case RequestCode.ADD_WRITE_PERM_OF_BROKER:
            call = calls.add_write_perm(ext["brokerName"])
        case RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
            call = calls.get_topics()
        case RequestCode.DELETE_TOPIC_IN_NAMESRV:
            call = calls.delete_topic(ext["topic"], ext.get("clusterName"))
        case RequestCode.REGISTER_TOPIC_IN_NAMESRV:
            call = calls.register_topic(ext["topic"], decode_route(body).queue_datas)
        case RequestCode.UPDATE_NAMESRV_CONFIG:
            call = calls.update_config(parse_properties(body.decode()))
        case RequestCode.GET_NAMESRV_CONFIG:
            call = calls.get_config()
        case RequestCode.QUERY_DATA_VERSION:
            version = decode_data_version(body)
            call = calls.query_data_version(_identity(ext), version, as_4x=b"stateVersion" not in body)
        case RequestCode.GET_BROKER_MEMBER_GROUP:
            call = calls.get_broker_member_group(ext["clusterName"], ext["brokerName"])
        case RequestCode.BROKER_HEARTBEAT:
            call = calls.broker_heartbeat(_identity(ext))
        case other:
            raise AssertionError(f"{other!r} is recorded, but there is no function for it")
    return call.request


def _identity(ext: dict[str, str]) -> BrokerIdentity:
    return BrokerIdentity(
        ext["clusterName"], ext["brokerName"], ext["brokerAddr"], int(ext.get("brokerId", "0"))
    )


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("pushes")])
def test_every_recorded_request_is_encoded_again_byte_for_byte(name: str) -> None:
    encoded_count = 0
    for line in recorded(name):
        asked = line.command
        zoned = asked.get(ZONE_NAME) is not None  # the order of Java's hash table is then another
        if asked.is_response or zoned:
            continue
        request = _remade(asked.code, asked.ext or {}, asked.body)
        command = Command(
            request.code,
            asked.opaque,
            asked.flag,
            asked.version,
            asked.language,
            ext=request.ext,
            body=request.body,
            serialize_type=asked.serialize_type,
        )
        assert encode(command) == line.frame
        encoded_count += 1
    assert encoded_count


READS: dict[int, Call[object]] = {
    RequestCode.PUT_KV_CONFIG: calls.put_kv_config("", "", ""),
    RequestCode.GET_KV_CONFIG: calls.get_kv_config("", ""),
    RequestCode.DELETE_KV_CONFIG: calls.delete_kv_config("", ""),
    RequestCode.REGISTER_BROKER: calls.register_broker(BrokerIdentity("", "", ""), b"", ha_server_addr=""),
    RequestCode.UNREGISTER_BROKER: calls.unregister_broker(BrokerIdentity("", "", "")),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: calls.get_route(""),
    RequestCode.GET_BROKER_CLUSTER_INFO: calls.get_cluster_info(),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: calls.wipe_write_perm(""),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: calls.add_write_perm(""),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: calls.get_topics(),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: calls.delete_topic(""),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: calls.register_topic("", ()),
    RequestCode.UPDATE_NAMESRV_CONFIG: calls.update_config({}),
    RequestCode.GET_NAMESRV_CONFIG: calls.get_config(),
    RequestCode.QUERY_DATA_VERSION: calls.query_data_version(BrokerIdentity("", "", ""), DataVersion()),
    RequestCode.GET_BROKER_MEMBER_GROUP: calls.get_broker_member_group("", ""),
    RequestCode.BROKER_HEARTBEAT: calls.broker_heartbeat(BrokerIdentity("", "", "")),
}


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("pushes")])
def test_every_recorded_answer_is_read(name: str) -> None:
    for line in recorded(name):
        if line.request is None or not line.command.is_response:
            continue
        call = READS[line.request.code]
        if line.command.code in call.accepts:
            call.result(A, line.command)
        else:
            with pytest.raises(ResponseError) as error:
                call.result(A, line.command)
            assert (error.value.code, error.value.remark) == (line.command.code, line.command.remark)


def answered(
    code: int = 0, ext: dict[str, str] | None = None, body: bytes = b"", remark: str | None = None
) -> Command:
    return Command(code, 1, 1, remark=remark, ext=ext, body=body)


def test_results_of_a_registration() -> None:
    call = READS[RequestCode.REGISTER_BROKER]
    ext = {"haServerAddr": "10.0.0.1:10912", "masterAddr": "10.0.0.1:10911"}
    table = KVTable({"OrderTopic": "broker-a:4"})
    assert call.result(
        A, answered(ext=ext, body=b'{"table":{"OrderTopic":"broker-a:4"}}')
    ) == RegisterBrokerResult("10.0.0.1:10912", "10.0.0.1:10911", table)
    assert call.result(A, answered()) == RegisterBrokerResult(None, None, None)


@pytest.mark.parametrize(
    ("ext", "body", "expected"),
    [
        (
            {"changed": "false"},
            b'{"counter":1,"stateVersion":0,"timestamp":5}',
            QueryDataVersionResult(False, DataVersion(0, 5, 1)),
        ),
        ({"changed": "true"}, b"", QueryDataVersionResult(True, None)),
        ({"changed": "False"}, b"", QueryDataVersionResult(False, None)),
        ({"changed": "nonsense"}, b"", QueryDataVersionResult(False, None)),
        (None, b"", QueryDataVersionResult(True, None)),
    ],
)
def test_results_of_a_data_version(
    ext: dict[str, str] | None, body: bytes, expected: QueryDataVersionResult
) -> None:
    assert READS[RequestCode.QUERY_DATA_VERSION].result(A, answered(ext=ext, body=body)) == expected


def test_what_is_not_there_is_none() -> None:
    assert calls.get_route("TA").result(A, answered(17)) is None
    assert calls.get_kv_config("ns", "k").result(A, answered(22)) is None
    assert calls.get_kv_list("ns").result(A, answered(22)) is None


def test_refusals_name_server_code_and_remark() -> None:
    with pytest.raises(ResponseError) as error:
        calls.get_topics().result(A, answered(1, remark="disable"))
    assert str(error.value) == "127.0.0.1:9876 answered code 1: disable"
    with pytest.raises(ResponseError, match="answered code 17: no remark"):
        calls.get_cluster_info().result(A, answered(17))


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (calls.get_route("TA"), answered(body=b"{")),
        (calls.get_route("TA"), answered()),
        (calls.get_cluster_info(), answered(body=b"[]")),
        (calls.get_config(), answered(body=b"\xff")),
        (calls.get_config(), answered(body=b"a=\\u12")),
        (calls.wipe_write_perm("b"), answered(ext={"wipeTopicCount": "many"})),
        (READS[RequestCode.REGISTER_BROKER], answered(body=b"{")),
        (READS[RequestCode.QUERY_DATA_VERSION], answered(body=b"{")),
    ],
)
def test_an_unreadable_answer_is_an_error_of_the_answer(call: Call[object], answer: Command) -> None:
    with pytest.raises(ResponseError, match="answered code 0: unreadable"):
        call.result(A, answer)


@pytest.mark.parametrize(
    ("entries", "body"),
    [
        ({}, ""),
        ({"a": "1", "b": "x y"}, "a=1\nb=x y\n"),
        ({"a": "中"}, "a=中\n"),
        ({"a b": "1"}, None),
        ({"a": "back\\slash"}, None),
        ({"a": "\\u12"}, None),
        ({"a": " leading"}, None),
        ({"a": "two\nlines"}, None),
        ({"#a": "1", "!b": "=", ":": "#"}, None),
    ],
)
def test_options_arrive_as_they_were_given(entries: dict[str, str], body: str | None) -> None:
    sent = calls.update_config(entries).request.body.decode()
    assert body is None or sent == body
    assert parse_properties(sent) == entries


def test_all_codes_that_a_name_server_answers_have_a_function() -> None:
    identity = BrokerIdentity("c", "b", "a:1")
    made = {
        *READS,
        calls.get_kv_list("ns").request.code,
        calls.get_topics_of_cluster("c1").request.code,
        calls.get_system_topics().request.code,
        calls.get_unit_topics().request.code,
        calls.get_unit_sub_topics().request.code,
        calls.get_unit_sub_ununit_topics().request.code,
        calls.get_client_config(["k"]).request.code,
        calls.check_readiness().request.code,
    }
    others = {
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE,
    }
    assert made == set(RequestCode) - others
    assert calls.query_data_version(identity, DataVersion()).request.ext == {
        "brokerId": "0",
        "clusterName": "c",
        "brokerAddr": "a:1",
        "brokerName": "b",
    }


def test_topics_come_as_a_list() -> None:
    body = b'{"brokerAddr":"10.0.0.1:10911","topicList":["c1","b1"]}'
    assert calls.get_system_topics().result(A, answered(body=body)) == TopicList(
        ("c1", "b1"), "10.0.0.1:10911"
    )


def test_both_clients_and_their_page_have_each_call() -> None:
    functions = {
        name
        for name, value in vars(calls).items()
        if isfunction(value) and value.__module__ == calls.__name__
    }
    public = {name for name in functions if not name.startswith("_")}
    assert {name for name in public if not hasattr(NameServerClient, name)} == set()
    assert {name for name in public if f"`{name}(" not in PAGE.read_text()} == set()
