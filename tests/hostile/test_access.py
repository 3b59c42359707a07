"""Peers that look for a way round the rules: what one may ask is not answered to another, whatever the caches have."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from mqnamesrv.store import EmbeddedStore
from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, SerializeType, encode
from testbed.broker import A, Topic
from testbed.connection import OPAQUES, V4_8_0, Connection
from testbed.nameserver import NameServer
from tests.access.files import SECRET, access_file

Start = Callable[..., NameServer]
REFUSED, DONE = ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS
REMOTE: Final = b"PROXY TCP4 8.8.8.8 10.9.9.9 41000 9876\r\n"
INSIDE: Final = b"PROXY TCP4 10.1.1.1 10.9.9.9 41000 9876\r\n"
KEY: Final = 'keys = [{ accessKey = "K", secrets = [{ file = "a.key" }] }]'
LOOKUP: Final = RequestCode.GET_ROUTEINFO_BY_TOPIC


@pytest.fixture
def start(transport: None, store: EmbeddedStore, tmp_path: Path) -> Iterator[Start]:
    """Starts a server of one worker with these principals, of the profile for other machines."""
    servers: list[NameServer] = []

    def started(principals: str = "", **options: str) -> NameServer:
        given = {"accessProfile": "guarded", "remotingWorkers": "1"} | options
        if principals:
            given["accessFile"] = str(access_file(tmp_path, principals))
        server = NameServer(tmp_path, given, url=store.url)
        servers.append(server)
        server.start()
        return server

    yield started
    for server in servers:
        server.stop()


def signed(
    code: int,
    ext: Mapping[str, str],
    body: bytes = b"",
    *,
    secret: str = SECRET,
    kind: SerializeType = SerializeType.JSON,
) -> Command:
    fields = dict(AclCredentials("K", secret)("", Request(code, dict(ext), body)).ext or {})
    return Command(code, next(OPAQUES), 0, V4_8_0, ext=fields, body=body, serialize_type=kind)


def codes(over: Connection, request: Command, times: int = 3) -> set[int]:
    """The codes of the replies to the same bytes."""
    over.send(encode(request) * times)
    return {over.receive().code for _ in range(times)}


@pytest.mark.parametrize("kind", SerializeType)
@pytest.mark.parametrize("rule", ["net+signed", "loopback", "loopback cidr:10.1.0.0/16+signed"])
def test_a_signature_opens_no_door_that_the_address_opened(
    start: Start, kind: SerializeType, rule: str
) -> None:
    server = start(f'[principals.p]\nroles = ["broker"]\n{KEY}', accessRead=rule, accessBroker=rule)
    first = b"" if rule.startswith("loopback") else INSIDE
    inside, outside = Connection(server.port, first=first), Connection(server.port, first=REMOTE)
    body = A.body()
    assert codes(inside, signed(RequestCode.REGISTER_BROKER, A.ext(body), body, kind=kind)) == {DONE}
    for request in (
        signed(LOOKUP, {"topic": "TA"}, kind=kind),
        signed(RequestCode.BROKER_HEARTBEAT, A.identity(), kind=kind),
    ):
        assert codes(inside, request, 9) == {DONE}
        assert codes(outside, request) == {REFUSED}


@pytest.mark.parametrize("kind", SerializeType)
def test_a_signed_list_of_clusters_opens_no_unsigned_one(start: Start, kind: SerializeType) -> None:
    """Both have one reply, and each its own right to it."""
    server = start(f'[principals.p]\nroles = ["reader"]\n{KEY}', accessRead="loopback signed")
    near, far = Connection(server.port), Connection(server.port, first=REMOTE)
    assert A.register(near).code == DONE
    clusters = RequestCode.GET_BROKER_CLUSTER_INFO
    unsigned = Command(clusters, 1, 0, V4_8_0, serialize_type=kind)
    proved = signed(clusters, {}, kind=kind)
    for over, request in ((far, proved), (far, proved), (near, unsigned), (near, unsigned), (far, proved)):
        assert codes(over, request) == {DONE}
        assert codes(far, unsigned) == {REFUSED}
        assert codes(far, signed(clusters, {}, secret="another secret", kind=kind), 1) == {REFUSED}


def test_the_key_of_a_client_takes_no_broker(start: Start) -> None:
    """A principal may take what a host registered, but only one that brokers are known by."""
    server = start(f'[principals.client]\nroles = ["reader"]\n{KEY}')
    broker = Connection(server.port, source="127.10.0.1")
    assert A.register(broker).code == DONE
    client = Connection(server.port, source="127.20.0.1")
    other = A.but(addr="127.20.0.1:10911")
    body = other.body()
    assert codes(client, signed(RequestCode.REGISTER_BROKER, other.ext(body), body), 1) == {REFUSED}
    body = A.body()
    codes(client, signed(RequestCode.REGISTER_BROKER, A.ext(body), body), 1)
    assert A.register(broker).code == DONE
    assert broker.ask(RequestCode.BROKER_HEARTBEAT, A.identity()).code == DONE
    assert A.addr in client.ask(LOOKUP, {"topic": "TA"}).body.decode()


def test_a_stranger_ends_no_broker_by_renewing_it(start: Start) -> None:
    """Not with a lease of a millisecond, nor by closing the connections that have displaced the broker's own."""
    server = start()
    broker, asks = Connection(server.port, source="127.10.0.1"), Connection(server.port)
    assert A.register(broker).code == DONE
    strangers = [Connection(server.port, source="127.66.0.1") for _ in range(20)]
    for counter, stranger in enumerate(strangers, 2):
        assert A.but(counter=counter, timeout_ms=1).register(stranger).code == DONE
        stranger.close()
    stranger = Connection(server.port, source="127.66.0.1")
    for _ in range(10):
        assert A.but(addr="127.66.0.1:10911").register(stranger).code == REFUSED
        assert A.addr in asks.ask(LOOKUP, {"topic": "TA"}).body.decode()
        time.sleep(0.1)


@pytest.mark.parametrize(("own", "other"), [("fd00::1", "fd00::2"), ("10.1.1.1", "10.1.1.2")])
def test_a_hosts_own_address_stays_its_own_when_its_connection_has_gone(
    start: Start, own: str, other: str
) -> None:
    """As behind a worker that was restarted; addresses are not probed here."""
    server = start(connectionLossProbe="false")
    kind, at = ("6", f"[{own}]:10911") if ":" in own else ("4", f"{own}:10911")
    first = [f"PROXY TCP{kind} {host} {own} 41000 9876\r\n".encode() for host in (own, other)]
    broker, stranger = (Connection(server.port, first=header) for header in first)
    a = A.but(addr=at)
    assert a.register(broker).code == DONE
    member = server.keys.member(f"c1:{at}")
    with server.store() as store:
        owners = [str(field) for field in store.hkeys(member) if "owner:" in str(field)]
        assert store.hdel(member, *owners) == 1
    for counter in (2, 3):
        assert a.but(counter=counter).register(stranger).code == DONE
    assert A.but(addr="10.9.9.9:10911").register(stranger).code == REFUSED
    assert a.unregister(stranger).code == REFUSED
    assert a.unregister(broker).code == DONE


def test_a_static_topic_is_within_the_limits_too(start: Start) -> None:
    """Its mapping is a part of the topic's route, though the table of topics has no such topic."""
    limited = 'roles = ["broker"]\nlimits = { topics = ["o-*"] }'
    over = Connection(start(f"[principals.p]\n{limited}\n{KEY}", accessBroker="signed").port)
    mapping = {"bname": "broker-a", "currIdMap": {"0": 0}, "topic": "x", "totalQueues": 1}
    for topic, code in (("x", REFUSED), ("o-1", DONE)):
        broker = A.but(
            topics=(Topic("o-1"), Topic("o-2")),
            more_wrapper={"topicQueueMappingInfoMap": {topic: mapping | {"topic": topic}}},
        )
        body = broker.body()
        assert codes(over, signed(RequestCode.REGISTER_BROKER, broker.ext(body), body), 1) == {code}
