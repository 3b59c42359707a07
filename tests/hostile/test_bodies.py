"""Bodies as big as a frame may be: each gets a reply, of one line if refused, and other clients are not delayed."""

import zlib
from collections.abc import Callable
from functools import cache

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.broker import Broker
from testbed.connection import Connection
from tests.hostile.attacker import Attacker
from tests.hostile.bodies import Case, cases
from tests.hostile.watch import Watch

ANSWER_S = 45.0
LARGEST = 16_700_000
BROKER = Broker(name="hostile", addr="127.66.0.1:10911")
WRAPPER = b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{},"topicConfigTable":{'
TWO = b'"T":{"topicName":"T"},"U":{"topicName":"U"}}}}'


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_any_registration_is_answered(over: Attacker, case: Case) -> None:
    assert_answered(over, RequestCode.REGISTER_BROKER, BROKER.identity() | ext(case), case.body(), (0, 1))
    over.ask_patiently(RequestCode.UNREGISTER_BROKER, BROKER.identity(), b"", ANSWER_S, (0,))


def ext(case: Case) -> dict[str, str]:
    return {"compressed": str(case.compressed).lower(), "heartbeatTimeoutMillis": "60000"}


def assert_answered(
    over: Attacker, code: RequestCode, fields: dict[str, str], body: bytes, codes: tuple[int, ...]
) -> None:
    over.ask_patiently(code, fields, body, ANSWER_S, codes)
    assert over.usable()


@pytest.mark.parametrize(
    ("code", "body", "codes"),
    [
        pytest.param(RequestCode.QUERY_DATA_VERSION, b"{" + b"1:2," * 4_000_000, (1,), id="322, bare keys"),
        pytest.param(RequestCode.QUERY_DATA_VERSION, b"[" * LARGEST, (1,), id="322, brackets"),
        pytest.param(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV, b"{" + b"1:2," * 4_000_000, (1,), id="217, bare keys"
        ),
        pytest.param(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
            b'{"queueDatas":[' + b"{}," * 300_000,
            (1,),
            id="217, empty",
        ),
        pytest.param(
            RequestCode.UPDATE_NAMESRV_CONFIG, b"a" * (1 << 20) + b"\\u12", (1,), id="318, an escape cut off"
        ),
        pytest.param(RequestCode.GET_BROKER_CLUSTER_INFO, bytes(LARGEST), (0,), id="106, zeros"),
        pytest.param(RequestCode.GET_ROUTEINFO_BY_TOPIC, bytes(LARGEST), (17,), id="105, zeros"),
        pytest.param(RequestCode.BROKER_HEARTBEAT, bytes(LARGEST), (0,), id="904, zeros"),
    ],
)
def test_a_big_body_of_any_request_is_answered(
    over: Attacker, code: RequestCode, body: bytes, codes: tuple[int, ...]
) -> None:
    assert_answered(over, code, BROKER.identity() | {"topic": "no-such-topic"}, body, codes)


@cache
def bomb() -> bytes:
    """256 MB of zeros as some 260 KB."""
    return zlib.compress(bytes(1 << 28), 9)


@pytest.mark.parametrize(
    ("body", "compressed"),
    [
        pytest.param(lambda: zlib.compress(bomb(), 9), True, id="a bomb in a bomb"),
        pytest.param(bomb, True, id="256 MB of zeros"),
        pytest.param(bomb, False, id="256 MB, not said to be compressed"),
        pytest.param(lambda: zlib.compress(b"x" * 1000)[:-5], True, id="cut off"),
        pytest.param(lambda: zlib.compress(b"x" * 1000)[:-1] + b"\0", True, id="a wrong checksum"),
        pytest.param(lambda: b"\x78\xbb" + bytes(1000), True, id="a preset dictionary"),
        pytest.param(
            lambda: WRAPPER + b'"a":' + b"[" * 10_000 + b"]" * 10_000 + b"," + TWO, False, id="10,000 deep"
        ),
        pytest.param(
            lambda: WRAPPER + b'"a":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"," + TWO,
            False,
            id="objects",
        ),
        pytest.param(
            lambda: WRAPPER.replace(b"{}", b'{"counter":9223372036854775808}') + TWO, False, id="over int64"
        ),
        pytest.param(
            lambda: WRAPPER + TWO.replace(b'"U"}', b'"U","perm":' + b"9" * 5000 + b"}"),
            False,
            id="5,000 digits",
        ),
        pytest.param(lambda: WRAPPER + TWO.replace(b'"U"}', b'"U","perm":1e400}'), False, id="infinite"),
        pytest.param(
            lambda: WRAPPER + TWO.replace(b'"U"}', b'"\\ud800"}'), False, id="half a surrogate pair"
        ),
        pytest.param(lambda: WRAPPER + TWO.replace(b'"U"}', b'"\xff\xfe"}'), False, id="no UTF-8"),
    ],
)
def test_a_bad_registration_is_refused_and_changes_nothing(
    watch: Watch, over: Attacker, body: Callable[[], bytes], compressed: bool
) -> None:
    before = clusters(over)
    fields = BROKER.identity() | {"compressed": str(compressed).lower()}
    assert_answered(over, RequestCode.REGISTER_BROKER, fields, body(), (1,))
    assert clusters(over) == before


def clusters(over: Connection) -> bytes:
    return over.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
