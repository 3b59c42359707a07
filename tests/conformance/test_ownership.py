"""Owners of brokers on the wire (docs/conformance.md, AC; docs/access.md): brokers are processes that listen, each of a
host of its own."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.process import Process

ROOT = Path(__file__).parents[2]
HERE, THERE, ELSEWHERE = "127.10.0.1", "127.20.0.1", "127.30.0.1"
ALIVE = """
import socket, sys, time
from testbed.broker import Broker
from testbed.connection import Connection

port, host, timeout_ms, stays = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "stays"
with socket.create_server((host, 0)) as listening:
    addr = f"{host}:{listening.getsockname()[1]}"
    connection = Connection(port, source=host)
    assert Broker(addr=addr, timeout_ms=timeout_ms).register(connection).code == 0
    if not stays:
        connection.close()
    print("registered", addr, flush=True)
    time.sleep(600)
"""
Start = Callable[..., NameServer]
Run = Callable[..., tuple[Process, Broker]]


@pytest.fixture
def guarded(launch: Start) -> NameServer:
    return launch(accessProfile="guarded")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts a broker's process that has registered; with `stays` its connection stays open."""
    running: list[Process] = []

    def start(
        server: NameServer, host: str = HERE, *, timeout_ms: int = 120_000, stays: bool = True
    ) -> tuple[Process, Broker]:
        arguments = (str(server.port), host, str(timeout_ms), "stays" if stays else "closes")
        folder = tmp_path / str(len(running))
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = Process("broker", [sys.executable, "-c", ALIVE, *arguments], folder, env)
        running.append(process)
        return process, Broker(addr=process.await_printed(r"registered (\S+)")[1], timeout_ms=timeout_ms)

    yield start
    for process in running:
        process.kill()


def another(server: NameServer, host: str = THERE) -> tuple[Connection, Broker]:
    """A broker of another host with the same name and id."""
    return Connection(server.port, source=host), Broker(addr=f"{host}:10911")


def addresses(connection: Connection) -> str:
    """The route of the broker's topic, as it came."""
    return connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}).body.decode()


def accepted(broker: Broker, over: Connection) -> bool:
    reply = broker.register(over)
    assert reply.code in (ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION)
    return reply.code == ResponseCode.SUCCESS


def conflicts(server: NameServer) -> list[dict[str, str]]:
    with server.store() as store:
        entries = [fields for _, fields in store.xrange(server.keys.events)]
    return [fields for fields in entries if fields["kind"] == "conflict_seen"]


@pytest.mark.conformance("AC-18")
def test_a_living_brokers_id_is_taken_by_no_other_host(guarded: NameServer, run: Run) -> None:
    _, a = run(guarded)
    connection, b = another(guarded)
    remark = f"access denied: broker needs the owner of broker-a; caller wire:{':'.join(map(str, connection.local))}"
    for _ in range(3):
        refused = b.register(connection)
        assert (refused.code, refused.remark, refused.ext) == (ResponseCode.NO_PERMISSION, remark, None)
        left = a.unregister(connection)
        assert (left.code, left.remark) == (ResponseCode.NO_PERMISSION, remark)
    assert a.addr in addresses(connection)
    assert b.addr not in addresses(connection)
    entries = conflicts(guarded)
    assert [(entry["cause"], entry["action"], entry["addr"]) for entry in entries] == [
        ("ownership", "refused", b.addr)
    ]
    assert a.addr in entries[0]["holder"]
    assert connection.usable()


@pytest.mark.conformance("AC-19")
def test_a_killed_brokers_id_is_free_at_once(guarded: NameServer, run: Run) -> None:
    """As of a pod that comes back with another address: its lease of two minutes is not waited for."""
    process, _ = run(guarded)
    connection, b = another(guarded)
    assert not accepted(b, connection)
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: accepted(b, connection), 10.0)
    eventually(lambda: b.addr in addresses(connection))


@pytest.fixture
def refusing(launch: Start) -> NameServer:
    return launch(accessProfile="java", identityConflicts="refuse")


@pytest.mark.conformance("AC-45")
def test_a_living_brokers_identity_is_refused_to_another_address(refusing: NameServer, run: Run) -> None:
    _, a = run(refusing)
    connection, b = another(refusing)
    for _ in range(3):
        refused = b.register(connection)
        assert (refused.code, refused.remark) == (
            ResponseCode.SYSTEM_ERROR,
            f"id 0 of broker 'broker-a' is taken: {a.addr} of cluster 'c1' lives there (identityConflicts=refuse)",
        )
    elsewhere = b.but(cluster="c9", id=1).register(connection)
    assert elsewhere.code == ResponseCode.SYSTEM_ERROR
    assert f"there {a.addr} of cluster 'c1' lives" in (elsewhere.remark or "")
    assert a.addr in addresses(connection)
    assert b.addr not in addresses(connection)
    assert [(entry["cause"], entry["action"], entry["addr"]) for entry in conflicts(refusing)] == [
        ("two_addresses", "refused", b.addr)
    ]
    assert connection.usable()


@pytest.mark.conformance("AC-46")
def test_a_refused_identity_is_free_at_once_when_its_broker_is_killed(refusing: NameServer, run: Run) -> None:
    process, _ = run(refusing)
    connection, b = another(refusing)
    assert b.register(connection).code == ResponseCode.SYSTEM_ERROR
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: b.register(connection).code == ResponseCode.SUCCESS, 10.0)
    eventually(lambda: b.addr in addresses(connection))


@pytest.mark.parametrize("name", ["broker-a", "made-up"])
def test_a_host_has_its_own_address_though_a_stranger_with_a_connection_was_there_first(
    guarded: NameServer, name: str
) -> None:
    """Otherwise a stranger that asks in the seconds of a restart keeps the broker away, or ends it when it likes."""
    stranger, connection = Connection(guarded.port, source=THERE), Connection(guarded.port, source=HERE)
    own = Broker(addr=f"{HERE}:10911")
    assert accepted(Broker(name=name, addr=own.addr, counter=7), stranger)
    assert accepted(own, connection)
    assert own.unregister(stranger).code == ResponseCode.NO_PERMISSION
    assert not accepted(Broker(name="another", addr=own.addr), stranger)
    assert own.addr in addresses(connection)


def test_it_is_free_too_when_the_worker_that_had_its_connection_died_with_it(
    guarded: NameServer, run: Run
) -> None:
    """No worker sees the end of such a connection."""
    a = Broker(addr=f"{HERE}:1")
    lost = Connection(guarded.port, source=HERE)
    assert a.register(lost).code == ResponseCode.SUCCESS
    os.kill(guarded.worker_of(lost), signal.SIGKILL)
    b = Broker(addr=f"{THERE}:10911")

    def is_accepted() -> bool:
        """Over whichever worker there is."""
        try:
            return accepted(b, Connection(guarded.port, source=THERE))
        except ConnectionError:
            return False

    eventually(is_accepted, 30.0)


@pytest.mark.conformance("AC-20")
def test_without_the_guard_it_is_as_with_java(launch: Start, run: Run) -> None:
    server = launch(accessProfile="java")
    _, a = run(server)
    connection, b = another(server)
    assert b.register(connection).code == ResponseCode.SUCCESS
    assert b.addr in addresses(connection)
    assert a.addr not in addresses(connection)
    other = Connection(server.port, source=ELSEWHERE)
    assert b.unregister(other).code == ResponseCode.SUCCESS
    assert other.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}).code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize(
    "stays", [True, False], ids=["stopped, its connection open", "closed, its port open"]
)
def test_one_that_may_live_keeps_its_id_until_its_lease_ends(
    guarded: NameServer, run: Run, *, stays: bool
) -> None:
    process, a = run(guarded, timeout_ms=4000, stays=stays)
    os.kill(process.pid, signal.SIGSTOP)  # its port accepts connections still
    connection, b = another(guarded)
    for _ in range(5):
        assert not accepted(b, connection)
    assert a.addr in addresses(connection)
    eventually(lambda: accepted(b, connection), 20.0)


def test_a_slave_takes_its_masters_place_on_the_same_host_and_waits_on_another(
    guarded: NameServer, run: Run
) -> None:
    _, a = run(guarded)
    for host, may in ((HERE, True), (THERE, False)):
        over, slave = Connection(guarded.port, source=host), Broker(id=1, addr=f"{host}:10911")
        assert slave.register(over).code == ResponseCode.SUCCESS
        assert accepted(slave.but(id=0), over) is may
        if may:
            assert a.but(id=1).register(over).code == ResponseCode.SUCCESS  # the former master, as its slave
            assert a.register(over).code == ResponseCode.SUCCESS
            assert slave.unregister(over).code == ResponseCode.SUCCESS


def test_two_that_claim_a_dead_brokers_id_at_once_do_not_both_get_it(guarded: NameServer, run: Run) -> None:
    process, _ = run(guarded)
    claims = [another(guarded, host) for host in (THERE, ELSEWHERE)]
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: sum(accepted(broker, over) for over, broker in claims), 10.0)
    for _ in range(5):
        assert sum(accepted(broker, over) for over, broker in claims) == 1
