"""Names and addresses of every kind: returned as they came, or refused; numbers beyond their width."""

import json
from typing import Any

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import SerializeType
from testbed.broker import Broker, Topic
from testbed.connection import V5_3_3, Connection
from testbed.eventually import eventually
from tests.hostile.attacker import Attacker
from tests.hostile.frames import json_frame
from tests.hostile.watch import EVERY_S, Watch

FORGED = "10.0.0.1\n[ERROR] FORGED\x1b[31m\x00\u202e:10911"
REMOVED = r"10.0.0.1\n[ERROR] FORGED\x1b[31m\x00\u202e:10911 is removed"
NAMES = [
    "",
    " ",
    " a b ",
    "a:b:c",
    ":",
    "{a}",
    "}{",
    "[]",
    '"',
    "'",
    "\\",
    "%3A%25",
    "*?[^a]",
    "a,b;c|d",
    "a\nb\r\n",
    "\x00",
    "a\x00b",
    "\x7f\x1b[2J",
    "é中主",
    "😀\U0010ffff",
    "\ufeff\u2028\ufffd",
    "%RETRY%g",
    "__proto__",
    "null",
    "0",
    "x" * 127,
    "x" * 255,
    "x" * 256,
    "主" * 170,
    "x" * 512,
]
LONG_NAMES = ["x" * 513, "主" * 171, "x" * 32767]
ADDRESSES = [
    "[::1]:10911",
    "[fe80::1%eth0]:10911",
    "fe80::1%25eth0:10911",
    "[fe80::1%2]:10911",
    "::",
    ":10911",
    "127.66.0.2",
    "127.66.0.2:99999999999",
    "127.66.0.2:-1",
    "host.example:10911 ",
    "*",
    "",
]


def named(place: str, name: str) -> Broker:
    broker = Broker("odd", addr="127.66.0.9:10911", cluster="odd-c", topics=(Topic("odd-1"), Topic("odd-2")))
    match place:
        case "broker":
            return broker.but(name=name)
        case "cluster":
            return broker.but(cluster=name)
        case "address":
            return broker.but(addr=name)
        case _:
            return broker.but(topics=(Topic(name), Topic("beside it")))


@pytest.mark.parametrize("kind", list(SerializeType), ids=["JSON", "binary"])
@pytest.mark.parametrize("place", ["broker", "cluster", "topic"])
def test_any_name_is_given_back_as_it_came(watch: Watch, place: str, kind: SerializeType) -> None:
    over = Connection(watch.server.port)
    for name in NAMES:
        assert_given_back(over, named(place, name), kind)
    over.close()


@pytest.mark.parametrize("place", ["broker", "cluster", "topic"])
def test_longer_names_are_refused(watch: Watch, place: str) -> None:
    over = Connection(watch.server.port)
    for name in LONG_NAMES:
        reply = named(place, name).register(over)
        assert (reply.code, "maxNameBytes=512" in (reply.remark or "")) == (1, True), name
        assert over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name}).code == 17
    over.close()


@pytest.mark.parametrize(
    ("code", "field"),
    [
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, "topic"),
        (RequestCode.DELETE_TOPIC_IN_NAMESRV, "topic"),
        (RequestCode.BROKER_HEARTBEAT, "clusterName"),
        (RequestCode.QUERY_DATA_VERSION, "brokerAddr"),
        (RequestCode.UNREGISTER_BROKER, "brokerName"),
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, "brokerName"),
        (RequestCode.GET_KV_CONFIG, "key"),
        (RequestCode.REGISTER_BROKER, "haServerAddr"),
    ],
)
def test_the_store_is_not_asked_about_a_field_of_any_length(
    watch: Watch, code: RequestCode, field: str
) -> None:
    over = Connection(watch.server.port)
    ext = {
        "clusterName": "c",
        "brokerAddr": "127.66.0.9:10911",
        "brokerName": "b",
        "brokerId": "0",
        "namespace": "n",
    }
    reply = over.ask(code, ext | {field: "x" * 65_537})
    assert (reply.code, reply.remark) == (1, f"{field} has more than 65536 characters")
    over.close()


def test_any_address_is_given_back_as_it_came(watch: Watch) -> None:
    over = Connection(watch.server.port)
    for address in ADDRESSES:
        assert_given_back(over, named("address", address), SerializeType.JSON)
    over.close()


def test_a_name_writes_no_log_line_of_its_own(watch: Watch) -> None:
    """Those of a broker that comes, and goes with its connection, name its address."""

    def is_logged() -> bool:
        """One line of a kind is, in a while."""
        over = Connection(watch.server.port)
        assert named("address", FORGED).register(over).code == 0
        over.close()
        return any(REMOVED in line for line in lines())

    def lines() -> list[str]:
        return [line for line in watch.server.said().splitlines() if "FORGED" in line]

    eventually(is_logged, 4 * EVERY_S)
    assert all(line.startswith("[20") and line.isprintable() for line in lines())


def assert_given_back(over: Connection, broker: Broker, kind: SerializeType) -> None:
    """Assert that a broker is listed and routed to while it is registered, and not after."""
    assert broker.register(over, serialize_type=kind).code == 0
    info = parsed(over, RequestCode.GET_BROKER_CLUSTER_INFO, {})
    assert info["brokerAddrTable"][broker.name]["brokerAddrs"] == {"0": broker.addr}
    assert broker.name in info["clusterAddrTable"][broker.cluster]
    for topic in broker.topics:
        route = parsed(over, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic.name})
        assert [data["brokerName"] for data in route["queueDatas"]] == [broker.name]
        assert route["brokerDatas"][0]["brokerAddrs"] == {"0": broker.addr}
    assert broker.unregister(over).code == 0
    assert broker.name not in parsed(over, RequestCode.GET_BROKER_CLUSTER_INFO, {})["brokerAddrTable"]


def parsed(over: Connection, code: RequestCode, ext: dict[str, str]) -> Any:
    answer = over.ask(code, ext | {"acceptStandardJsonOnly": "true"}, version=V5_3_3)
    assert answer.code == 0, (ext, answer.remark)
    return json.loads(answer.body.replace(b"{0:", b'{"0":'))


def test_a_name_with_half_a_surrogate_pair_is_closed_or_refused(over: Attacker) -> None:
    """UTF-8 cannot encode it: header and body are malformed."""
    body = over_body('"\\ud800":{"topicName":"\\ud800"}')
    assert over.ask(RequestCode.REGISTER_BROKER, named("topic", "x").identity(), body).code == 1
    over.send(json_frame(b'{"code":103,"extFields":{"brokerName":"\\udc00"}}'))
    assert over.closed()


def over_body(table: str) -> bytes:
    return f'{{"topicConfigSerializeWrapper":{{"topicConfigTable":{{{table}}}}}}}'.encode()


@pytest.mark.parametrize(
    ("field", "number", "code"),
    [
        ("brokerId", "9223372036854775807", 0),
        ("brokerId", "9223372036854775808", 1),
        ("brokerId", "-9223372036854775809", 1),
        ("brokerId", "9" * 5000, 1),
        ("brokerId", "1e3", 1),
        ("brokerId", "0x10", 1),
        ("brokerId", "1_0", 1),
        ("brokerId", " 1", 1),
        ("brokerId", "", 1),
        ("heartbeatTimeoutMillis", "9223372036854775807", 0),
        ("heartbeatTimeoutMillis", "9" * 5000, 0),
        ("bodyCrc32", "9" * 5000, 0),
        ("bodyCrc32", "4294967296", 0),
        ("bodyCrc32", "-1", 1),
        ("enableActingMaster", "\x00", 0),
    ],
)
def test_numbers_beyond_their_width(over: Attacker, field: str, number: str, code: int) -> None:
    """What is no number counts as missing, as in Java; without a broker id no broker is registered."""
    broker = named("broker", "numbers")
    assert broker.register(over, ext={field: number}).code == code
    broker.unregister(over, brokerId=None)
    assert over.usable()
