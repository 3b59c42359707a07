"""Every request code through the service, on a real store: code, remark, ext fields and body."""

import json
import zlib
from typing import Any
from unittest.mock import ANY

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from tests.worker.scene import Broker, Scene, asynchronous, serving
from worker.dispatch import HANDLERS

A, B = Broker("broker-a", "127.0.0.1:10911"), Broker("broker-b", "127.0.0.3:10911")
ROUTE_TN = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"a"}}],"queueDatas":[{"brokerName":"broker-a","perm":6,'
    b'"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}'
)
NO_ROUTE = (
    "No topic route info in name server for the topic: %s\n"
    "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)
SETUP = [
    (103, A.body(TA=6, TB=6), A.ext),
    (103, B.body(TA=6, TC=3), B.ext),
    (100, b"", {"namespace": "n", "key": "k", "value": 'v;="é'}),
]
LEGACY_TB = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"c1",'
    b'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
    b'"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}'
)


def test_every_request_code_of_a_name_server_has_a_handler() -> None:
    lists = {206, 224, 304, 311, 312, 313}
    assert set(HANDLERS) == {
        *range(100, 107), 205, 216, 217, 219, 318, 319, 322, 327, 901, 904, 19876, *lists
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "body", "ext", "expected"),
    [
        pytest.param(100, b"", {"namespace": "n"}, (1, "namespace or key is null", None, b""), id="100-no-key"),
        pytest.param(100, b"", {"namespace": "n", "key": "x"}, (0, None, None, b""), id="100-no-value"),
        pytest.param(101, b"", {"namespace": "n", "key": "k"}, (0, None, {"value": "v;=\"é"}, b""), id="101"),
        pytest.param(
            101, b"", {"namespace": "n", "key": "z"},
            (22, "No config item, Namespace: n Key: z", {}, b""), id="101-unknown",
        ),
        pytest.param(101, b"", {}, (22, "No config item, Namespace: null Key: null", {}, b""), id="101-nothing-named"),
        pytest.param(102, b"", {"namespace": "n", "key": "k"}, (0, None, None, b""), id="102"),
        pytest.param(102, b"", {"namespace": "n"}, (0, None, None, b""), id="102-no-key"),
        pytest.param(219, b"", {"namespace": "n"}, (0, None, None, '{"table":{"k":"v;=\\"é"}}'.encode()), id="219"),
        pytest.param(219, b"", {"namespace": "x"}, (22, "No config item, Namespace: x", None, b""), id="219-unknown"),
        pytest.param(219, b"", {}, (22, "No config item, Namespace: null", None, b""), id="219-nothing-named"),
        pytest.param(105, b"", {"topic": "TB"}, (0, None, None, LEGACY_TB), id="105-legacy"),
        pytest.param(105, b"", {"topic": "X"}, (17, NO_ROUTE % "X", None, b""), id="105-unknown"),
        pytest.param(105, b"", {"topic": "é中"}, (17, NO_ROUTE % "é中", None, b""), id="105-unknown-not-ascii"),
        pytest.param(105, b"", {}, (17, NO_ROUTE % "null", None, b""), id="105-no-topic"),
        pytest.param(205, b"", {"brokerName": "broker-a"}, (0, None, {"wipeTopicCount": "2"}, b""), id="205"),
        pytest.param(205, b"", {"brokerName": "x"}, (0, None, {"wipeTopicCount": "0"}, b""), id="205-unknown"),
        pytest.param(205, b"", {}, (0, None, {"wipeTopicCount": "0"}, b""), id="205-nothing-named"),
        pytest.param(327, b"", {"brokerName": "broker-b"}, (0, None, {"addTopicCount": "2"}, b""), id="327"),
        pytest.param(327, b"", {}, (0, None, {"addTopicCount": "0"}, b""), id="327-nothing-named"),
        pytest.param(206, b"", {}, (0, None, None, b'{"topicList":["TA","TB","TC"]}'), id="206"),
        pytest.param(224, b"", {"cluster": "c1"}, (0, None, None, b'{"topicList":["TA","TB","TC"]}'), id="224"),
        pytest.param(224, b"", {"cluster": "x"}, (0, None, None, b'{"topicList":[]}'), id="224-unknown"),
        pytest.param(224, b"", {}, (0, None, None, b'{"topicList":[]}'), id="224-nothing-named"),
        pytest.param(
            304, b"", {},
            (0, None, None, b'{"brokerAddr":"127.0.0.1:10911","topicList":["c1","broker-a","broker-b"]}'), id="304",
        ),
        pytest.param(311, b"", {}, (0, None, None, b'{"topicList":[]}'), id="311"),
        pytest.param(312, b"", {}, (0, None, None, b'{"topicList":[]}'), id="312"),
        pytest.param(313, b"", {}, (0, None, None, b'{"topicList":[]}'), id="313"),
        pytest.param(216, b"", {"topic": "TA"}, (0, None, None, b""), id="216"),
        pytest.param(216, b"", {}, (0, None, None, b""), id="216-no-topic"),
        pytest.param(217, ROUTE_TN, {"topic": "TN"}, (0, None, None, b""), id="217"),
        pytest.param(217, b"", {"topic": "TN"}, (0, None, None, b""), id="217-no-body"),
        pytest.param(217, ROUTE_TN, {}, (0, None, None, b""), id="217-no-topic"),
        pytest.param(318, b"", {}, (0, None, None, b""), id="318-no-body"),
        pytest.param(318, b"orderMessageEnable=true\nx=1\n", {}, (0, None, None, b""), id="318"),
        pytest.param(318, b"listenPort=abc", {}, (0, None, None, b""), id="318-no-number"),
        pytest.param(318, b"a\n" * 500, {}, (0, None, None, b""), id="318-lines"),
        pytest.param(
            318, b"a\r" * 501, {}, (1, "a body of 501 lines, of 500 at most", None, b""), id="318-more-lines",
        ),
        pytest.param(318, b"a=\\u12", {}, (1, "string2Properties error", None, b""), id="318-malformed"),
        pytest.param(
            318, b"orderMessageEnable=true\nkvConfigPath=/x", {},
            (16, "Can not update config in black list.", None, b""), id="318-black-list",
        ),
        pytest.param(
            322, b'{"counter":1,"timestamp":1000}', A.ext,
            (0, None, {"changed": "false"}, b'{"counter":1,"stateVersion":0,"timestamp":1000}'), id="322-same",
        ),
        pytest.param(
            322, b'{"counter":2,"timestamp":1000}', A.ext,
            (0, None, {"changed": "true"}, b'{"counter":1,"stateVersion":0,"timestamp":1000}'), id="322-other",
        ),
        pytest.param(
            322, b"", A.ext,
            (0, None, {"changed": "true"}, b'{"counter":1,"stateVersion":0,"timestamp":1000}'), id="322-no-body",
        ),
        pytest.param(
            322, b'{"counter":1,"timestamp":1000}', {**A.ext, "clusterName": "c2"},
            (0, None, {"changed": "true"}, b""), id="322-other-cluster",
        ),
        pytest.param(322, b"{}", {}, (0, None, {"changed": "true"}, b""), id="322-nothing-named"),
        pytest.param(904, b"", A.ext, (0, None, None, b""), id="904"),
        pytest.param(19876, b"", {}, (0, None, {"startedMillis": ANY}, b""), id="19876"),
        pytest.param(904, b"", {**A.ext, "brokerAddr": "127.0.0.7:1"}, (0, None, None, b""), id="904-unknown"),
        pytest.param(
            901, b"", {"clusterName": "zzz", "brokerName": "broker-a"},
            (0, None, None, b'{"brokerMemberGroup":{"brokerAddrs":{0:"127.0.0.1:10911"},'
            b'"brokerName":"broker-a","cluster":"zzz"}}'), id="901-cluster-echoed",
        ),
        pytest.param(
            901, b"", {"clusterName": "c1", "brokerName": "x"},
            (0, None, None, b'{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"x","cluster":"c1"}}'),
            id="901-unknown",
        ),
        pytest.param(104, b"", A.ext, (0, None, None, b""), id="104"),
        pytest.param(104, b"", {**A.ext, "brokerName": "x"}, (0, None, None, b""), id="104-unknown"),
        pytest.param(104, b"", {}, (0, None, None, b""), id="104-nothing-named"),
        pytest.param(99999, b"", {}, (3, " request type 99999 not supported", None, b""), id="unknown-code"),
        pytest.param(47, b"{}", {}, (3, " request type 47 not supported", None, b""), id="47"),
    ],
)  # fmt: skip
@asynchronous
async def test_an_answer_is_javas(
    store: EmbeddedStore, code: int, body: bytes, ext: dict[str, str], expected: tuple[object, ...]
) -> None:
    async with serving(store.url) as scene:
        for prepared, content, fields in SETUP:
            assert (await scene.ask(prepared, content, fields)).code == 0
        answer = await scene.ask(code, body, ext)
        assert (answer.code, answer.remark, answer.ext, answer.body) == expected


@pytest.mark.parametrize(
    ("ext", "body", "remark"),
    [
        pytest.param({"bodyCrc32": "1"}, A.body(), "crc32 not match", id="checksum"),
        pytest.param({"brokerId": "x"}, A.body(), "brokerId", id="id-is-no-number"),
        pytest.param({"brokerName": None}, A.body(), "the custom field <brokerName> is null", id="no-name"),
        pytest.param(
            {"brokerAddr": None}, A.body(), "the custom field <brokerAddr> is null", id="no-address"
        ),
        pytest.param(
            {"clusterName": None}, A.body(), "the custom field <clusterName> is null", id="no-cluster"
        ),
        pytest.param({}, b"not json", "Failed to decode RegisterBrokerBody", id="no-json"),
        pytest.param(
            {"compressed": "true"}, A.body(), "Failed to decode RegisterBrokerBody", id="not-compressed"
        ),
        pytest.param({}, A.body(TA=6), "register broker failed", id="single-topic"),
    ],
)
@asynchronous
async def test_a_refused_registration_says_why_and_leaves_nothing(
    store: EmbeddedStore, ext: dict[str, str | None], body: bytes, remark: str
) -> None:
    given = {name: value for name, value in (A.ext | ext).items() if value is not None}
    async with serving(store.url) as scene:
        answer = await scene.ask(103, body, given)
        assert answer.code == 1
        assert remark in (answer.remark or "")
        assert "\n" not in (answer.remark or "")
        assert (await scene.ask(106)).body == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'


@pytest.mark.parametrize(
    ("ext", "timeout_ms"),
    [
        pytest.param({"bodyCrc32": "abc"}, 120_000, id="checksum-unreadable"),
        pytest.param({"bodyCrc32": str(zlib.crc32(A.body()) & 0x7FFFFFFF)}, 120_000, id="checksum-right"),
        pytest.param({"heartbeatTimeoutMillis": "0"}, 1, id="timeout-of-nothing"),
        pytest.param({"heartbeatTimeoutMillis": "99999999999"}, 86_400_000, id="timeout-of-years"),
        pytest.param({"heartbeatTimeoutMillis": "x"}, 120_000, id="timeout-unreadable"),
        pytest.param({"enableActingMaster": "TRUE", "__ZONE_NAME": "z1"}, 120_000, id="5.x"),
    ],
)
@asynchronous
async def test_a_registration_is_taken(
    store: EmbeddedStore, redis: redis_py.Redis, ext: dict[str, str], timeout_ms: int
) -> None:
    async with serving(store.url) as scene:
        answer = await scene.register(A, ext=ext)
        assert (answer.code, answer.ext, answer.body) == (0, {}, b"")
        assert redis.hget(f"ns:{{default}}:member:c1:{A.ext['brokerAddr']}", "timeout") == str(timeout_ms)


@asynchronous
async def test_a_key_of_another_type_is_no_fault_of_the_server(
    store: EmbeddedStore, redis: redis_py.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(store.url) as scene:
        redis.set("ns:{default}:kv:n", "no hash")
        answer = await scene.ask(RequestCode.GET_KV_CONFIG, ext={"namespace": "n", "key": "k"})
    assert answer.code == 1
    assert answer.remark
    assert "WRONGTYPE" in answer.remark
    assert "failed, since the store refuses: WRONGTYPE" in caplog.text
    assert "a fault of this server" not in caplog.text
    assert "Traceback" not in caplog.text


@asynchronous
async def test_a_slave_gets_its_master_and_every_broker_the_order_topics(store: EmbeddedStore) -> None:
    slave = Broker("broker-a", "127.0.0.2:10911", id=1)
    async with serving(store.url) as scene:
        await scene.register(A)
        answer = await scene.register(slave)
        assert answer.ext == {"masterAddr": A.ext["brokerAddr"], "haServerAddr": A.ext["haServerAddr"]}
        assert answer.body == b""
        await scene.ask(100, namespace="ORDER_TOPIC_CONFIG", key="TA", value="broker-a:4")
        assert (await scene.register(A)).body == b'{"table":{"TA":"broker-a:4"}}'
        await scene.ask(318, b"returnOrderTopicConfigToBroker=false")
        assert (await scene.register(A)).body == b""


@pytest.mark.parametrize(
    ("option", "codes"),
    [
        pytest.param("enableAllTopicList", (206,), id="206"),
        pytest.param("enableTopicList", (224, 311, 312, 313), id="other-lists"),
    ],
)
@asynchronous
async def test_lists_can_be_disabled(store: EmbeddedStore, option: str, codes: tuple[int, ...]) -> None:
    async with serving(store.url) as scene:
        await scene.ask(318, f"{option}=false".encode())
        for code in codes:
            answer = await scene.ask(code)
            assert (answer.code, answer.remark) == (1, "disable")
        assert (await scene.ask(304)).code == 0


@asynchronous
async def test_319_lists_sorted_what_318_set_at_once(store: EmbeddedStore) -> None:
    async with serving(store.url, listing_also=(("other", "x"),)) as scene:
        await scene.ask(318, b"orderMessageEnable=true\nunknown=1\nother=y\n")
        lines = (await scene.ask(319)).body.decode().splitlines()
        assert lines == sorted(lines)
        assert "orderMessageEnable=true" in lines
        assert "other=y" in lines
        assert not [line for line in lines if line.startswith("unknown")]


async def _view(scene: Scene, **given: Any) -> Any:
    answer: Command = await scene.ask(105, topic="TA", **given)
    return answer.body


@asynchronous
async def test_dialect_zone_and_order_make_the_route(store: EmbeddedStore) -> None:
    async with serving(store.url, omit_v5_members=True) as scene:
        await scene.register(A, __ZONE_NAME="z1")
        await scene.register(B, __ZONE_NAME="z2")
        assert b"{0:" in await _view(scene, version=400)
        assert b'{"0":' in await _view(scene, version=401)
        assert b'{"0":' in await _view(scene, acceptStandardJsonOnly="TRUE")
        assert b"enableActingMaster" not in await _view(scene, version=373)
        assert b"enableActingMaster" in await _view(scene, version=413)
        zone = json.loads(await _view(scene, version=479, __ZONE_MODE="true", __ZONE_NAME="Z1"))
        assert [one["brokerName"] for one in zone["brokerDatas"]] == ["broker-a"]
        empty = json.loads(await _view(scene, version=479, __ZONE_MODE="true", __ZONE_NAME="z9"))
        assert (empty["brokerDatas"], empty["queueDatas"]) == ([], [])
        await scene.ask(100, namespace="ORDER_TOPIC_CONFIG", key="TA", value="broker-a:4")
        assert b"orderTopicConf" not in await _view(scene)
        await scene.ask(318, b"orderMessageEnable=true")
        assert b'"orderTopicConf":"broker-a:4"' in await _view(scene)
        await scene.ask(102, namespace="ORDER_TOPIC_CONFIG", key="TA")
        assert b"orderTopicConf" not in await _view(scene)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (RequestCode.UPDATE_NAMESRV_CONFIG, b"a=1\n" * 5000),
        (RequestCode.REGISTER_TOPIC_IN_NAMESRV, b'{"queueDatas":[' + b"{}," * 100_000 + b"{}]}"),
    ],
)
@asynchronous
async def test_a_body_that_would_delay_the_others_is_not_read(
    store: EmbeddedStore, code: RequestCode, body: bytes
) -> None:
    async with serving(store.url) as scene:
        answer = await scene.ask(code, body, topic="T")
        assert (answer.code, f"a body of {len(body)} bytes" in (answer.remark or "")) == (1, True)
