"""Brokers with a key, as 5.x sends their registrations (docs/conformance.md, AC-24; docs/access.md)."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from registry import access_tokens
from registry.drivers import run
from registry.keys import member_key
from registry.plans import Origin
from rocketmq_remoting.acl_signature import SIGNATURE
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.registration import body_crc32
from rocketmq_remoting.remoting_command import SerializeType
from testbed import scrape
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.ports import free_port
from tests.access.files import OTHER, access_file, write
from tests.worker.registrations import ADDRESS, KINDS, body_of, registration, signed

Start = Callable[..., NameServer]
REFUSED, DONE = ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS
ROUNDS: Final = 20
WITHIN_S: Final = 2.0
"""A change of the access file is seen within a second, one in the store is followed at once."""
FILE: Final = """
[principals.team]
roles = ["broker"]
keys = [{ accessKey = "K", secrets = [{ file = "a.key"%s }] }]

[principals.other]
roles = ["broker"]
keys = [{ accessKey = "J", secrets = [{ file = "b.key" }] }]
"""


@pytest.fixture
def start(launch: Start, tmp_path: Path) -> Start:
    """Starts a server for one test that admits brokers with a key, and no others, and owners of what they have."""
    file = access_file(tmp_path, FILE % "")
    rules = {"accessProfile": "", "accessBroker": "signed", "ownershipGuard": "true"}
    return partial(launch, accessFile=str(file), remotingWorkers="1", httpPort=str(free_port()), **rules)


def ask(connection: Connection, command: Command) -> int:
    connection.send(encode(command))
    return int(connection.receive().code)


def of_round(number: int) -> Command:
    return registration(body_of(number), 100 + number)


def answered_by_bytes(server: NameServer) -> float:
    return scrape.value(int(server.options["httpPort"]), "cached_requests_total", request_code="103")


def register_until_short_cut(connection: Connection) -> None:
    """Register until the short cut is taken."""
    for number in range(3):
        assert ask(connection, signed(of_round(number))) == DONE


@pytest.mark.conformance("AC-24")
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_from_the_second_round_on_a_signed_broker_takes_the_short_cut(
    start: Start, kind: SerializeType
) -> None:
    server = start()
    connection = Connection(server.port)
    rounds = [signed(replace(of_round(number), serialize_type=kind)) for number in range(ROUNDS)]
    assert len({command.get(SIGNATURE) for command in rounds}) == ROUNDS
    assert [ask(connection, command) for command in rounds] == [DONE] * ROUNDS
    # the first of them writes, and the one behind it is the first that is unchanged
    eventually(lambda: answered_by_bytes(server) == ROUNDS - 2)


def lease_of(server: NameServer) -> float | None:
    with server.store() as store:
        ends: float | None = store.zscore(server.keys.leases, member_key("c1", ADDRESS))
    return ends


def with_body(command: Command, body: bytes) -> Command:
    """The request with that body and its checksum, under the signature that it had."""
    ext = (command.ext or {}) | {"bodyCrc32": str(body_crc32(body))}
    return replace(command, body=body, ext=ext)


@pytest.mark.conformance("AC-24")
def test_what_a_signed_broker_has_not_signed_is_refused_each_time(start: Start) -> None:
    server = start()
    connection = Connection(server.port)
    register_until_short_cut(connection)
    lease, last = lease_of(server), signed(of_round(2))
    altered = {
        "the stamp": with_body(last, body_of(3)),
        "a topic more": with_body(last, body_of(2, topics=4)),
        "another secret": signed(of_round(3), secret=OTHER),
        "another principal": signed(of_round(3), "J", OTHER),
        "a key that is not known": signed(of_round(3), "U"),
        "unsigned": of_round(3),
    }
    for what, command in altered.items():
        for over in (connection, Connection(server.port)):
            assert ask(over, command) == REFUSED, what
    assert lease_of(server) == lease
    assert ask(connection, signed(of_round(4))) == DONE
    eventually(lambda: answered_by_bytes(server) == 2)


def test_a_principal_has_its_hosts_address_though_a_stranger_was_there_first(start: Start) -> None:
    """By a name that its limits do not name, too."""
    server = start(accessBroker="open", bindAddress="127.0.0.1")
    host = ADDRESS.rpartition(":")[0]
    stranger, connection = Connection(server.port, source="127.0.0.66"), Connection(server.port, source=host)
    assert ask(stranger, registration(body_of(), brokerName="made-up")) == DONE
    assert ask(Connection(server.port), signed(of_round(0))) == REFUSED
    assert ask(connection, signed(of_round(1))) == DONE
    assert ask(stranger, registration(body_of())) == REFUSED


@pytest.mark.conformance("AC-24")
def test_a_signed_broker_whose_key_is_revoked_is_refused_at_once(start: Start) -> None:
    server = start()
    connection = Connection(server.port)
    register_until_short_cut(connection)
    numbers = iter(range(3, 10_000))
    with server.store() as store:
        assert run(access_tokens.revoke(server.keys, "acl:K", "team", Origin("t-1", "test")), store)
        eventually(lambda: ask(connection, signed(of_round(next(numbers)))) == REFUSED, WITHIN_S)
        assert [ask(connection, signed(of_round(next(numbers)))) for _ in range(3)] == [REFUSED] * 3
        assert run(access_tokens.restore(server.keys, "acl:K", "team", Origin("t-2", "test")), store)
    eventually(lambda: ask(connection, signed(of_round(next(numbers)))) == DONE, WITHIN_S)


def test_a_signed_broker_whose_key_ends_is_refused_from_then_on(start: Start, tmp_path: Path) -> None:
    server = start()
    connection = Connection(server.port)
    register_until_short_cut(connection)
    ends = time.time() + 4
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ends)) + f".{int(ends % 1 * 1000):03}Z"
    write(tmp_path / "access.toml", FILE % f", expires = {at}")
    number = 3
    while (asked := time.time()) < ends + 0.5:
        code, number = ask(connection, signed(of_round(number))), number + 1
        assert code == DONE or time.time() >= ends
        assert code == REFUSED or asked < ends + 0.1
        time.sleep(0.05)


def test_while_its_key_is_not_known_a_broker_takes_the_short_cut_too(start: Start) -> None:
    """As where no principals are: a signature is no harm where none is asked for."""
    server = start(accessBroker="open")
    connection = Connection(server.port)
    for number in range(ROUNDS):
        assert ask(connection, signed(of_round(number), "U")) == DONE
    eventually(lambda: answered_by_bytes(server) == ROUNDS - 2)
