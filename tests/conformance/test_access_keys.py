"""Callers that sign their requests (docs/conformance.md, AC; docs/access.md)."""

import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from registry import access_tokens
from registry.drivers import run
from registry.plans import Origin
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, SerializeType, encode
from testbed.access_file import AccessFile, principal
from testbed.broker import A, Topic
from testbed.connection import OPAQUES, V4_8_0, Connection
from testbed.eventually import PATIENCE_S, eventually
from testbed.nameserver import NameServer

Start = Callable[..., NameServer]
SECRET, OTHER = "of-mqadmin-0123456789", "another-0123456789ab"
PUT: Final = {"namespace": "nsé", "key": "k1", "value": "välue"}
REFUSED, DONE = ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS
WITHIN_S: Final = 2.0
"""A file is looked at each second."""
REMOTE: Final = b"PROXY TCP4 8.8.8.8 10.9.9.9 41000 9876\r\n"


@pytest.fixture
def file(tmp_path: Path) -> AccessFile:
    return AccessFile(tmp_path)


@pytest.fixture
def start(launch: Start, file: AccessFile) -> Start:
    """Starts servers for one test with an access file, and the profile that they have by default."""
    return partial(launch, accessProfile="", accessFile=str(file.path))


def signed(
    code: int,
    ext: Mapping[str, str],
    body: bytes = b"",
    *,
    key: str = "K",
    secret: str = SECRET,
    kind: SerializeType = SerializeType.JSON,
    oneway: bool = False,
) -> Command:
    request = AclCredentials(key, secret)("", Request(code, dict(ext), body))
    return Command(
        code,
        next(OPAQUES),
        2 if oneway else 0,
        V4_8_0,
        ext=dict(request.ext or {}),
        body=body,
        serialize_type=kind,
    )


def ask(connection: Connection, command: Command) -> Command:
    connection.send(encode(command))
    return connection.receive()


def code_of(connection: Connection, command: Command) -> int:
    return int(ask(connection, command).code)


def await_code(
    connections: Iterable[Connection], request: Command, code: int, within_s: float = PATIENCE_S
) -> None:
    for connection in connections:
        eventually(lambda over=connection: code_of(over, request) == code, within_s)  # type: ignore[misc]


def have_known_by_bytes(connections: Iterable[Connection], *requests: Command) -> None:
    """Have requests answered over each connection until they are known by their bytes."""
    for request in requests:
        await_code(connections, request, DONE)
        for connection in connections:
            assert [code_of(connection, request) for _ in range(3)] == [DONE] * 3


def await_refusal(server: NameServer, connections: Iterable[Connection], *requests: Command) -> None:
    """Ask until the first request is refused over each connection, new ones too; then all are."""
    others = [Connection(server.port) for _ in range(4)]  # one worker may have all that there were
    every = [*connections, *others]
    await_code(every, requests[0], REFUSED, WITHIN_S)
    for connection in every:
        assert [code_of(connection, request) for request in requests] == [REFUSED] * len(requests)


def last_actor(server: NameServer) -> tuple[str, str | None]:
    with server.store() as store:
        (_, event), *_ = store.xrevrange(server.keys.events, count=1)
    return event["actor"], event.get("peer")


def lookup(*, key: str = "K", secret: str = SECRET, kind: SerializeType = SerializeType.JSON) -> Command:
    return signed(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}, key=key, secret=secret, kind=kind)


@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
def test_a_signature_gives_what_its_role_has(start: Start, file: AccessFile, kind: SerializeType) -> None:
    file.write(principal("mqadmin", "operator"), k=SECRET)
    server = start(accessAdmin="signed", accessConfig="signed")
    connection = Connection(server.port)
    put = partial(signed, RequestCode.PUT_KV_CONFIG, PUT, kind=kind)
    assert code_of(connection, put()) == DONE
    actor, peer = last_actor(server)
    assert (actor, peer) == ("acl:mqadmin", f"127.0.0.1:{connection.local[1]}")
    for wrong in (put(secret=OTHER), put(key="unknown"), put(key="")):
        refused = ask(connection, wrong)
        assert refused.code == REFUSED
        assert str(refused.remark).startswith("access denied: admin needs signed over TLS; caller wire:")
    config = ask(connection, signed(RequestCode.GET_NAMESRV_CONFIG, {}, kind=kind))
    assert config.code == REFUSED
    assert str(config.remark).endswith("; caller acl:mqadmin")


@pytest.mark.conformance("AC-13")
def test_a_signature_counts_for_operators_over_tls_or_on_this_machine(start: Start, file: AccessFile) -> None:
    file.write(principal("mqadmin", "operator"), k=SECRET)
    port = start(bindAddress="0.0.0.0").port
    put = partial(signed, RequestCode.PUT_KV_CONFIG, PUT)
    plain = ask(Connection(port, first=REMOTE), put())
    assert plain.code == REFUSED
    assert "signed over TLS" in str(plain.remark)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    assert code_of(Connection(port, first=REMOTE, tls=tls), put()) == DONE
    assert code_of(Connection(port), put()) == DONE


@pytest.mark.conformance("AC-14")
def test_what_a_client_signs_is_no_request_of_an_operator(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    connection = Connection(start(accessAdmin="signed").port)
    captured = lookup()
    deletion = Command(RequestCode.DELETE_TOPIC_IN_NAMESRV, 9, 0, V4_8_0, ext=captured.ext)
    assert code_of(connection, deletion) == REFUSED


@pytest.mark.conformance("AC-08")
def test_a_key_hurts_nobody_where_none_is_asked_for(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    connection = Connection(start().port)
    A.register(connection)
    for request in (lookup(key="unknown"), lookup(secret=OTHER), lookup(key="")):
        assert code_of(connection, request) == DONE
    assert code_of(connection, signed(RequestCode.PUT_KV_CONFIG, PUT, secret=OTHER)) == REFUSED
    assert code_of(connection, signed(RequestCode.PUT_KV_CONFIG, PUT, key="unknown")) == DONE


def test_a_wrong_signature_is_refused_where_the_rule_of_lookups_names_signatures(
    start: Start, file: AccessFile
) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    connection = Connection(start(accessRead="loopback signed").port)
    A.register(connection)
    other = lookup()
    for _ in range(3):
        assert code_of(connection, lookup()) == DONE
    forged = Command(105, 5, 0, V4_8_0, ext=dict(other.ext or {}) | {"topic": "TB"})
    for _ in range(3):
        assert code_of(connection, lookup(secret=OTHER)) == REFUSED
        assert code_of(connection, forged) == REFUSED
        assert code_of(connection, signed(105, {"topic": "TB"})) == DONE


@pytest.mark.conformance("AC-17")
def test_limits(start: Start, file: AccessFile) -> None:
    limits = 'limits = { brokers = ["b-*"], topics = ["o-*"] }'
    file.write(principal("team", "broker", more=limits), k=SECRET)
    server = start(accessBroker="signed", accessAdmin="signed")
    connection = Connection(server.port)

    def register(name: str, *topics: str) -> int:
        broker = A.but(name=name, topics=tuple(Topic(topic) for topic in topics))
        body = broker.body()
        return code_of(connection, signed(RequestCode.REGISTER_BROKER, broker.ext(body), body))

    assert register("c-1", "o-1", "o-2") == REFUSED
    assert register("b-1", "o-1", "x") == REFUSED
    for code, ext, body in (
        (RequestCode.UNREGISTER_BROKER, A.but(name="c-1").identity(), b""),
        (RequestCode.GET_BROKER_MEMBER_GROUP, A.but(name="c-1").identity(), b""),
        (RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "o-1"}, b'{"queueDatas":[{"brokerName":"c-1"}]}'),
        (RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "x"}, b'{"queueDatas":[{"brokerName":"b-1"}]}'),
    ):
        assert code_of(connection, signed(code, ext, body)) == REFUSED, code
    with server.store() as store:
        assert not store.exists(server.keys.leases)
    assert register("b-1", "o-1", "o-2") == DONE
    assert register("b-1", "o-1", "o-2") == DONE
    assert register("b-1", "o-1", "o-3", "x") == REFUSED


@pytest.mark.conformance("AC-21")
def test_two_secrets_are_good_until_one_is_removed(start: Start, file: AccessFile) -> None:
    two = '{ file = "k" }, { file = "n" }'
    file.write(principal("client", "reader", secrets=two), k=SECRET, n=OTHER)
    connection = Connection(start(accessRead="signed", accessBroker="open").port)
    A.register(connection)
    assert [code_of(connection, lookup(secret=secret)) for secret in (SECRET, OTHER, "no") * 2] == [
        DONE,
        DONE,
        REFUSED,
    ] * 2
    file.write(principal("client", "reader", secrets='{ file = "n" }'))
    eventually(lambda: code_of(connection, lookup()) == REFUSED, WITHIN_S)
    assert code_of(connection, lookup(secret=OTHER)) == DONE


@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
def test_a_key_that_is_taken_away_is_no_longer_answered_by_its_bytes(
    start: Start, file: AccessFile, kind: SerializeType
) -> None:
    """AC-22's caches, for a key that leaves the file."""
    file.write(principal("client", "broker"), k=SECRET)
    server = start(accessRead="signed", accessBroker="signed")
    connections = [Connection(server.port) for _ in range(6)]
    body = A.body()
    assert code_of(connections[0], signed(RequestCode.REGISTER_BROKER, A.ext(body), body)) == DONE
    requests = [
        signed(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}, kind=kind),
        signed(RequestCode.GET_BROKER_CLUSTER_INFO, {}, kind=kind),
        signed(RequestCode.BROKER_HEARTBEAT, A.identity(), kind=kind),
    ]
    have_known_by_bytes(connections, *requests)
    file.write(principal("client", "broker", key="Z"))
    await_refusal(server, connections, *requests)


@pytest.mark.conformance("AC-25")
def test_a_key_ends_when_it_ends(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(accessRead="signed", accessBroker="open")
    connections = [Connection(server.port) for _ in range(4)]
    A.register(connections[0])
    eventually(lambda: all(code_of(over, lookup()) == DONE for over in connections))
    ends = time.time() + 6
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ends)) + f".{int(ends % 1 * 1000):03}Z"
    file.write(principal("client", "reader", secrets=f'{{ file = "k", expires = {at} }}'))
    while (now := time.time()) < ends + 1:
        for connection in connections:
            got = code_of(connection, lookup())
            assert got == DONE or time.time() >= ends
            assert got == REFUSED or now < ends + 0.1
        time.sleep(0.1)


@pytest.mark.conformance("AC-32")
def test_a_broken_file_changes_nothing(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(accessRead="signed")
    connection = Connection(server.port)
    file.write("[principals.client]\nroles = [")
    eventually(lambda: "the access file is not taken" in server.said(), WITHIN_S + 1)
    assert code_of(connection, lookup()) == ResponseCode.TOPIC_NOT_EXIST
    assert code_of(Connection(server.port), lookup()) == ResponseCode.TOPIC_NOT_EXIST
    assert SECRET not in server.said()
    file.write(principal("client", "reader", key="Z"))
    eventually(lambda: code_of(connection, lookup()) == REFUSED, WITHIN_S + 1)


def test_ten_bad_proofs_shut_their_host_out_and_no_other(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "operator"), k=SECRET)
    server = start(accessAdmin="signed", remotingWorkers="1")
    bad = Connection(server.port, first=REMOTE)
    for _ in range(10):
        assert code_of(bad, signed(RequestCode.PUT_KV_CONFIG, PUT, secret=OTHER)) == REFUSED
    shut = Connection(server.port, first=REMOTE)
    shut.send_command(lookup())
    assert shut.closed()
    assert Connection(server.port).usable()
    assert Connection(server.port, first=REMOTE.replace(b"8.8.8.8", b"8.8.8.9")).usable()
    assert bad.usable()


def test_a_host_that_is_shut_out_guesses_no_more_over_its_open_connections(
    start: Start, file: AccessFile
) -> None:
    file.write(principal("client", "operator"), k=SECRET)
    server = start(accessAdmin="signed", remotingWorkers="1")
    far = [Connection(server.port, first=REMOTE) for _ in range(3)]
    assert all(over.usable() for over in far)
    near = Connection(server.port)
    guesses = encode(signed(RequestCode.PUT_KV_CONFIG, PUT, secret=OTHER)) * 50
    for over, answered in zip(far, (11, 1, 1), strict=True):
        over.send(guesses)
        for _ in range(answered):
            assert over.receive().code == REFUSED
        assert over.closed()
    near.send(guesses)  # as a proxy has them, of all its clients
    for _ in range(50):
        assert near.receive().code == REFUSED
    assert near.usable()


def test_while_it_observes_no_host_is_shut_out(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "operator"), k=SECRET)
    server = start(accessAdmin="signed", accessMode="observe", remotingWorkers="1")
    bad = Connection(server.port, first=REMOTE)
    for _ in range(20):
        assert code_of(bad, signed(RequestCode.PUT_KV_CONFIG, PUT, secret=OTHER)) == DONE
    assert Connection(server.port, first=REMOTE).usable()


def test_a_long_body_is_verified_and_other_requests_do_not_wait(start: Start, file: AccessFile) -> None:
    file.write(principal("team", "broker"), k=SECRET)
    connection = Connection(start(accessBroker="signed").port)
    broker = A.but(topics=tuple(Topic(f"topic-{number}") for number in range(4000)))
    body = broker.body()
    assert len(body) > 256 << 10
    registration = signed(RequestCode.REGISTER_BROKER, broker.ext(body), body)
    assert code_of(connection, registration) == DONE
    altered = body.replace(b"topic-39", b"topic-38", 1)
    forged = Command(registration.code, 7, 0, V4_8_0, ext=registration.ext, body=altered)
    assert code_of(connection, forged) == REFUSED


@pytest.mark.conformance("AC-22")
@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
def test_a_revoked_key_is_refused_everywhere_within_a_second(
    start: Start, file: AccessFile, kind: SerializeType
) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(accessRead="signed", accessBroker="open")
    connections = [Connection(server.port) for _ in range(6)]
    A.register(connections[0])
    request = lookup(kind=kind)
    have_known_by_bytes(connections, request)
    with server.store() as store:
        assert run(access_tokens.revoke(server.keys, "acl:K", "client", Origin("t-1", "test")), store)
        await_refusal(server, connections, request, request)
        assert run(access_tokens.restore(server.keys, "acl:K", "client", Origin("t-2", "test")), store)
    await_code(connections, request, DONE, WITHIN_S)


@pytest.mark.conformance("AC-42")
def test_a_flood_of_refusals_writes_no_event_and_few_lines(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(accessRead="signed", accessBroker="signed", remotingWorkers="1")
    connection = Connection(server.port)
    frames = encode(Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, 0, V4_8_0, ext={"topic": "T"})) * 100
    for _ in range(100):
        connection.send(frames)
        assert {connection.receive().code for _ in range(100)} == {REFUSED}
    with server.store() as store:
        assert not [
            kind for _, event in store.xrange(server.keys.events) if "access" in (kind := event["kind"])
        ]
    assert server.said().count("access denied") == 1
