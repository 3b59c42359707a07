"""Classes and rules on the wire (docs/conformance.md, AC; docs/access.md)."""

import struct
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address

import pytest

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, SerializeType, encode
from testbed.broker import A
from testbed.connection import V4_8_0, Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer

Start = Callable[..., NameServer]
PUT = {"namespace": "n", "key": "k", "value": "v"}
INSIDE, OUTSIDE = "10.1.0.5", "10.2.0.5"
SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")


def v1(source: str) -> bytes:
    """Return the PROXY header of a client there."""
    return f"PROXY TCP4 {source} 10.9.9.9 41000 9876\r\n".encode()


def v2(source: str) -> bytes:
    """As `v1`, in version 2."""
    addresses = IPv4Address(source).packed + IPv4Address("10.9.9.9").packed + struct.pack(">HH", 41000, 9876)
    return SIGNATURE + struct.pack(">BBH", 0x21, 0x11, len(addresses)) + addresses


LOCAL = SIGNATURE + struct.pack(">BBH", 0x20, 0, 0)


@pytest.fixture
def start(launch: Start) -> Start:
    """Starts servers for one test, with the profile that they have by default."""
    return partial(launch, accessProfile="")


def code(connection: Connection, of: RequestCode, ext: dict[str, str] | None = None) -> int:
    return int(connection.ask(of, ext).code)


def put(connection: Connection) -> Command:
    return connection.ask(RequestCode.PUT_KV_CONFIG, PUT)


def has_route(connection: Connection) -> bool:
    return not code(connection, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"})


@pytest.mark.conformance("AC-30")
def test_by_default_brokers_and_clients_are_served_and_others_than_this_machine_change_nothing(
    start: Start,
) -> None:
    port = start(bindAddress="0.0.0.0").port
    here, remote = Connection(port), Connection(port, first=v1("8.8.8.8"))
    assert A.register(remote).code == ResponseCode.SUCCESS
    assert code(remote, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}) == ResponseCode.SUCCESS
    assert put(here).code == ResponseCode.SUCCESS
    refused = put(remote)
    assert refused.code == ResponseCode.NO_PERMISSION
    assert refused.remark == (
        "access denied: admin needs loopback or signed over TLS or mtls; caller wire:8.8.8.8:41000"
    )
    assert refused.ext is None
    assert remote.usable()


@pytest.mark.conformance("AC-33")
@pytest.mark.parametrize("header", [v1("127.0.0.1"), v2("127.0.0.1")], ids=["version 1", "version 2"])
def test_a_header_of_a_peer_that_is_not_trusted_is_not_believed(start: Start, header: bytes) -> None:
    port = start(proxyTrustedCidrs="10.0.0.0/8").port
    assert put(Connection(port)).code == ResponseCode.SUCCESS
    liar = Connection(port, first=header)
    refused = put(liar)
    assert refused.code == ResponseCode.NO_PERMISSION
    assert str(refused.remark).endswith(f"; caller wire:127.0.0.1:{liar.local[1]}")


def test_a_trusted_proxy_on_this_machine_makes_none_of_its_clients_one_of_this_machine(
    start: Start,
) -> None:
    port = start().port
    assert put(Connection(port)).code == ResponseCode.SUCCESS
    for header in (v1("127.0.0.1"), v2("127.0.0.1"), b"PROXY UNKNOWN\r\n", LOCAL):
        proxied = Connection(port, first=header)
        assert put(proxied).code == ResponseCode.NO_PERMISSION, header
        assert proxied.usable()


def test_a_proxy_that_has_to_name_its_clients_gives_others_no_rights_by_address(start: Start) -> None:
    port = start(proxyRequired="true", accessRead="net", accessNetworks="127.0.0.0/8,10.1.0.0/16").port
    topics = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS
    assert code(Connection(port), topics) == ResponseCode.NO_PERMISSION
    assert code(Connection(port, first=v2(INSIDE)), topics) == ResponseCode.SUCCESS
    assert code(Connection(port, first=v2(OUTSIDE)), topics) == ResponseCode.NO_PERMISSION
    assert code(Connection(port, first=LOCAL), topics) == ResponseCode.NO_PERMISSION


@pytest.mark.conformance("AC-26")
@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
def test_a_refused_registration_is_answered_as_it_was_asked(start: Start, kind: SerializeType) -> None:
    server = start(accessBroker="off")
    connection = Connection(server.port)
    body = A.body()
    connection.send(
        encode(
            Command(
                RequestCode.REGISTER_BROKER, 7, 0, V4_8_0, ext=A.ext(body), body=body, serialize_type=kind
            )
        )
    )
    refused = connection.receive()
    assert (refused.code, refused.opaque, refused.serialize_type) == (ResponseCode.NO_PERMISSION, 7, kind)
    assert str(refused.remark).startswith(
        "access denied: broker needs what this port does not have; caller wire:"
    )
    assert not refused.ext
    assert not refused.body
    assert connection.usable()
    connection.send_oneway(RequestCode.REGISTER_BROKER, A.ext(body), body)
    assert connection.silent()
    assert connection.usable()
    assert (
        code(connection, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}) == ResponseCode.TOPIC_NOT_EXIST
    )


@pytest.mark.conformance("AC-11")
def test_a_refused_data_version_has_the_broker_register(start: Start) -> None:
    """An error would be "not changed" to it, and it would never register again (observed)."""
    port = start(accessBroker="cidr:10.1.0.0/16").port
    inside, outside = Connection(port, first=v1(INSIDE)), Connection(port, first=v1(OUTSIDE))
    assert A.register(inside).code == ResponseCode.SUCCESS
    asked = RequestCode.QUERY_DATA_VERSION, A.identity(), A.data_version()
    assert (inside.ask(*asked).ext or {})["changed"] == "false"
    for _ in range(3):
        refused = outside.ask(*asked)
        assert (refused.code, refused.ext, refused.body) == (0, {"changed": "true"}, b"")
    assert A.register(outside).code == ResponseCode.NO_PERMISSION


@pytest.mark.conformance("AC-23")
@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
def test_what_is_answered_by_its_bytes_is_so_to_those_only_who_may_ask_it(
    start: Start, kind: SerializeType
) -> None:
    server = start(accessRead="cidr:10.1.0.0/16", accessBroker="cidr:10.1.0.0/16")
    inside = [Connection(server.port, first=v1(INSIDE)) for _ in range(4)]
    outside = [Connection(server.port, first=v1(OUTSIDE)) for _ in range(4)]
    assert A.register(inside[0]).code == ResponseCode.SUCCESS
    for connection in inside:
        eventually(partial(has_route, connection))
    for request in (
        Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, 0, V4_8_0, ext={"topic": "TA"}, serialize_type=kind),
        Command(RequestCode.GET_BROKER_CLUSTER_INFO, 2, 0, V4_8_0, serialize_type=kind),
        Command(RequestCode.BROKER_HEARTBEAT, 3, 0, V4_8_0, ext=A.identity(), serialize_type=kind),
    ):
        for connection in inside * 3:
            connection.send(encode(request))
            assert connection.receive().code == ResponseCode.SUCCESS
        for connection in outside * 2:
            connection.send(encode(request) * 3)
            assert [connection.receive().code for _ in range(3)] == [ResponseCode.NO_PERMISSION] * 3


@pytest.mark.conformance("AC-27")
def test_no_request_changes_who_may_ask(start: Start) -> None:
    port = start(accessProfile="secure", accessConfig="loopback", configBlackList="").port
    connection = Connection(port)
    for line in (
        b"accessAdmin=open",
        b"proxyRequired=false",
        b"tls.server.mode=disabled",
        b"ownershipGuard=false",
    ):
        refused = connection.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=line + b"\n")
        assert refused.code == ResponseCode.NO_PERMISSION
        assert refused.remark == "Can not update config in black list."


def test_while_it_observes_everything_is_answered(start: Start) -> None:
    server = start(accessRead="off", accessBroker="off", accessAdmin="off", accessMode="observe")
    connection = Connection(server.port)
    assert A.register(connection).code == ResponseCode.SUCCESS
    for _ in range(3):
        assert code(connection, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}) == ResponseCode.SUCCESS
    assert (connection.ask(RequestCode.QUERY_DATA_VERSION, A.identity(), A.data_version()).ext or {})[
        "changed"
    ] == "false"
    assert put(connection).code == ResponseCode.SUCCESS


def test_while_it_observes_owners_are_not_enforced(start: Start) -> None:
    server = start(ownershipGuard="true", accessMode="observe")
    assert A.register(Connection(server.port)).code == ResponseCode.SUCCESS
    stranger, taken = Connection(server.port, source="127.0.0.9"), A.but(addr="127.0.0.9:10911")
    assert taken.register(stranger).code == ResponseCode.SUCCESS
    assert taken.register(stranger).code == ResponseCode.SUCCESS
    assert A.unregister(stranger).code == ResponseCode.SUCCESS
    assert taken.unregister(Connection(server.port)).code == ResponseCode.SUCCESS


def test_unknown_codes_are_answered_as_such_to_all(start: Start) -> None:
    off = dict.fromkeys(("accessRead", "accessBroker", "accessAdmin", "accessConfig"), "off")
    connection = Connection(start(**off).port)
    assert connection.ask(4711).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert connection.ask(RequestCode.CHECK_READINESS).code == ResponseCode.SUCCESS


@pytest.mark.conformance("AC-31")
def test_profile_java_refuses_nothing(launch: Start) -> None:
    """The servers of all other tests here have it, and so those of `make interop`."""
    server = launch(accessProfile="java")
    remote = Connection(server.port, first=v1("8.8.8.8"))
    for of, ext, body in (
        (RequestCode.PUT_KV_CONFIG, PUT, b""),
        (RequestCode.DELETE_KV_CONFIG, PUT, b""),
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "b"}, b""),
        (RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "b"}, b""),
        (RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T"}, b""),
        (RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "T"}, b'{"queueDatas":[]}'),
        (RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"orderMessageEnable=false\n"),
        (RequestCode.GET_NAMESRV_CONFIG, {}, b""),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}, b""),
    ):
        assert remote.ask(of, ext, body).code != ResponseCode.NO_PERMISSION, of
    assert A.register(remote).code == ResponseCode.SUCCESS
