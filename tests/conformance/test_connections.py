"""Connections, TLS, PROXY (docs/conformance.md, CO).

The idle limit is 2 s here instead of 4, and other times shrink with it.
"""

import ssl
import struct
import time
from collections.abc import Callable

import pytest

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, encode
from testbed.broker import A
from testbed.connection import Connection
from testbed.eventually import eventually, stays
from testbed.nameserver import NameServer
from testbed.scene import Scene
from tests.conformance.test_frames import E1, is_unknown_topic_test

IDLE_S = 2.0
TLS = ssl.create_default_context()
TLS.check_hostname = False
TLS.verify_mode = ssl.CERT_NONE
PROXY_V1 = b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 9876\r\n"
PROXY_V2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11"
    + struct.pack(">H", 12)
    + bytes([1, 2, 3, 4, 5, 6, 7, 8])
    + struct.pack(">HH", 1111, 9876)
)
TLS_CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)


@pytest.mark.conformance("CO-01")
@pytest.mark.server("short")
def test_a_silent_connection_is_closed(ns: Scene) -> None:
    began = time.monotonic()
    assert ns.connect().closed(IDLE_S + 1.5)
    assert time.monotonic() - began > IDLE_S - 0.5


@pytest.mark.conformance("CO-02")
@pytest.mark.server("short")
def test_the_broker_of_a_silent_connection_goes_with_it(ns: Scene) -> None:
    A.but(timeout_ms=60_000).register(ns.k1)
    assert ns.k1.closed(IDLE_S + 1.5)
    eventually(lambda: not ns.brokers() and not ns.has_route("TA"))


@pytest.mark.conformance("CO-03")
@pytest.mark.server("short")
def test_a_request_now_and_then_keeps_a_connection_open(ns: Scene) -> None:
    stays(ns.k1.usable, 2.5 * IDLE_S, every_s=IDLE_S / 3)


@pytest.mark.conformance("CO-04")
@pytest.mark.parametrize("tls", [pytest.param(None, id="plain"), pytest.param(TLS, id="TLS")])
def test_permissive_tls_takes_both(ns: Scene, tls: ssl.SSLContext | None) -> None:
    assert_e1_is_answered(ns.server, tls=tls)


def assert_e1_is_answered(
    server: NameServer, *, tls: ssl.SSLContext | None = None, first: bytes = b""
) -> None:
    connection = Connection(server.port, tls=tls, first=first)
    connection.send(E1)
    assert is_unknown_topic_test(connection.receive())
    connection.close()


@pytest.mark.conformance("CO-05")
@pytest.mark.server("tls-disabled")
def test_disabled_tls_closes_on_a_handshake(ns: Scene) -> None:
    ns.k1.send(TLS_CLIENT_HELLO)
    assert ns.k1.closed()
    assert_e1_is_answered(ns.server)


@pytest.fixture
def tls_only(shared_server: Callable[[str], NameServer]) -> NameServer:
    return shared_server("tls-enforcing")


@pytest.mark.conformance("CO-06")
def test_enforced_tls_answers_tls(tls_only: NameServer) -> None:
    assert_e1_is_answered(tls_only, tls=TLS)


@pytest.mark.conformance("CO-07")
def test_enforced_tls_does_not_execute_a_plain_request(tls_only: NameServer) -> None:
    plain = Connection(tls_only.port)
    body = A.body()
    plain.send_oneway(RequestCode.REGISTER_BROKER, A.ext(body), body)
    assert plain.closed()
    secure = Connection(tls_only.port, tls=TLS)
    assert (
        secure.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
        == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
    )
    secure.close()


@pytest.mark.conformance("CO-08", "CO-09", "CO-10")
@pytest.mark.parametrize(
    ("first", "tls"),
    [
        pytest.param(PROXY_V1, None, id="version 1"),
        pytest.param(PROXY_V2, None, id="version 2"),
        pytest.param(PROXY_V1, TLS, id="version 1, then TLS"),
    ],
)
def test_a_proxy_header_before_the_first_request(ns: Scene, first: bytes, tls: ssl.SSLContext | None) -> None:
    assert_e1_is_answered(ns.server, first=first, tls=tls)


@pytest.mark.conformance("CO-08", "CO-09")
@pytest.mark.parametrize(
    "first", [pytest.param(PROXY_V1, id="version 1"), pytest.param(PROXY_V2, id="version 2")]
)
def test_the_peer_is_the_one_the_proxy_header_names(ns: Scene, first: bytes) -> None:
    over = Connection(ns.server.port, first=first)
    A.register(over)
    with ns.server.store() as store:
        (_, event), *_ = store.xrevrange(ns.server.keys.events, count=1)
    assert event["actor"] == "wire:1.2.3.4:1111"
    A.unregister(over)
    over.close()


@pytest.mark.conformance("CO-12")
@pytest.mark.server("crowded")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(RequestCode.GET_ROUTEINFO_BY_TOPIC, id="routes"),
        pytest.param(RequestCode.GET_BROKER_MEMBER_GROUP, id="all else"),
    ],
)
def test_more_requests_at_once_than_may_wait(ns: Scene, code: RequestCode) -> None:
    """The handlers of many requests in one write all wait for the store."""
    asked = [
        Command(int(code), n, ext={"topic": f"T{n}", "clusterName": "c", "brokerName": f"b{n}"})
        for n in range(50)
    ]
    ns.k1.send(b"".join(encode(request) for request in asked))
    answers = [ns.k1.receive() for _ in asked]
    refused = {answer.remark for answer in answers if answer.code == ResponseCode.SYSTEM_BUSY}
    assert refused == {"[OVERLOAD]system busy, start flow control for a while"}
    assert any(answer.code in (0, ResponseCode.TOPIC_NOT_EXIST) for answer in answers)
    assert ns.k1.usable()


@pytest.mark.conformance("CO-13")
def test_clients_that_get_go_away_while_shutting_down(launch: Callable[..., NameServer]) -> None:
    server = launch(enableShutdownGracefully="true", shutdownWaitTimeSeconds="6")
    connection = Connection(server.port)
    assert connection.ask(206, version=477).code == ResponseCode.SUCCESS
    server.begin_stop()
    eventually(lambda: connection.ask(206, version=477).code == ResponseCode.GO_AWAY, 3.0)
    assert connection.ask(206, version=477).remark == "please go away"
    assert connection.ask(206, version=475).code == ResponseCode.SUCCESS
    assert connection.ask(206, version=373).code == ResponseCode.SUCCESS
    connection.close()
