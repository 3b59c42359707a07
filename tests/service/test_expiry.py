"""How long routes show a dead broker: until its lease ends if it hangs, under a second if it ended."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import msgspec
import pytest

from registry.keys import Keys, member_key
from rocketmq_remoting.codes import RequestCode
from testbed.broker import A
from testbed.connection import Connection
from testbed.eventually import eventually, stays
from testbed.nameserver import NameServer, environment
from testbed.processes import Family, stopped, two_more_of_each

TIMEOUT_MS = 2500
CONNECTIONS_MAX = 200
GRACE_MS = 1000  # promised: in no answer later than this after the end of the lease
RECORDED_WITHIN_S = 16.0  # a worker records what is 10 s overdue when no job does


class Look(msgspec.Struct, frozen=True):
    """One reply: the times (ms) of request and reply, and whether the broker was in it."""

    asked_ms: float
    answered_ms: float
    present: bool


class Watcher(threading.Thread):
    """Looks up a route and the cluster info over its own connection, again and again."""

    def __init__(self, connection: Connection, address: str) -> None:
        super().__init__(daemon=True)
        self.looks: list[Look] = []
        self._connection = connection
        self._address = address
        self._over = threading.Event()

    def run(self) -> None:
        questions: tuple[tuple[int, dict[str, str]], ...] = (
            (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}),
            (RequestCode.GET_BROKER_CLUSTER_INFO, {}),
        )
        while not self._over.is_set():
            for code, ext in questions:
                asked = time.time() * 1000
                body = self._connection.ask(code, ext).body
                self.looks.append(Look(asked, time.time() * 1000, self._address.encode() in body))
            time.sleep(0.01)

    def end(self) -> list[Look]:
        self._over.set()
        self.join()
        return self.looks


def watchers_of_all_workers(server: NameServer, address: str) -> list[Watcher]:
    """Return two watchers a worker; the kernel chooses the worker of a connection."""
    by_worker: dict[int, list[Connection]] = {}
    for _ in range(CONNECTIONS_MAX):
        connection = Connection(server.port)
        worker = eventually(partial(server.worker_of, connection))  # it may not be accepted yet
        by_worker.setdefault(worker, []).append(connection)
        chosen = [connection for connections in by_worker.values() for connection in connections[:2]]
        if len(chosen) == 2 * server.workers:
            return [Watcher(connection, address) for connection in chosen]
    raise AssertionError(f"{CONNECTIONS_MAX} connections, workers {list(by_worker)}")


@contextmanager
def broker_process(port: int, ip: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a broker on a free port of that loopback address; yield the process and its address."""
    command = [sys.executable, "-m", "tests.service.broker_process", str(port), f"{ip}:0", str(TIMEOUT_MS)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def scheduling(server: NameServer, kind: str) -> AbstractContextManager[None]:
    """Return a context with scheduler and job worker as they are, stopped, or three of each."""
    family = Family.of(server.pid)
    if kind == "dead":
        return stopped(*family.schedulers, *family.job_workers)
    return (
        two_more_of_each(environment(server.folder, server.options)) if kind == "tripled" else nullcontext()
    )


def end_of_lease(server: NameServer, address: str) -> float:
    """Wait for the end of a lease; return it (ms), as last renewed: by a registration that was under way, too."""
    end = 0.0
    with server.store() as store:
        while (lease := store.zscore(server.keys.leases, member_key("c1", address))) is not None:
            end = lease
            if time.time() * 1000 > end:
                break
            time.sleep(0.01)
    assert end > 0
    return end


def removals(server: NameServer, keys: Keys, address: str) -> list[dict[str, str]]:
    with server.store() as store:
        entries = [fields for _, fields in store.xrange(keys.events)]
    return [e for e in entries if e["kind"] == "broker_removed" and e["addr"] == address]


def listed(server: NameServer, address: str) -> bool:
    return address.encode() in Connection(server.port).ask(RequestCode.GET_BROKER_CLUSTER_INFO).body


@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", ["running", "dead", "tripled"])
def test_a_hanging_broker_is_shown_until_its_lease_ends(server: NameServer, kind: str) -> None:
    with scheduling(server, kind), broker_process(server.port, "127.31.0.1") as (process, address):
        watchers = watchers_of_all_workers(server, address)
        for watcher in watchers:
            watcher.start()
        process.send_signal(signal.SIGSTOP)
        lease = end_of_lease(server, address)
        eventually(lambda: time.time() * 1000 > lease + GRACE_MS + 300)
        looks = [look for watcher in watchers for look in watcher.end()]
        eventually(lambda: removals(server, server.keys, address), within_s=RECORDED_WITHIN_S)
    before = [look for look in looks if look.answered_ms < lease]
    after = [look for look in looks if look.asked_ms > lease + GRACE_MS]
    assert len(before) > 50
    assert all(look.present for look in before)
    assert len(after) > 20
    assert not any(look.present for look in after)
    (entry,) = removals(server, server.keys, address)
    assert (entry["cause"], int(entry["effective_ms"])) == ("expired", int(lease))
    assert json.loads(entry["addrs"]) == {}


def test_a_killed_broker_is_gone_long_before_its_lease_ends(server: NameServer) -> None:
    with broker_process(server.port, "127.31.0.2") as (process, address):
        assert listed(server, address)
        process.kill()
        eventually(lambda: not listed(server, address))
    (entry,) = removals(server, server.keys, address)
    assert entry["cause"] == "lost"


def test_a_reachable_broker_whose_connection_is_cut_stays(server: NameServer) -> None:
    with socket.create_server(("127.31.0.3", 0)) as listener:
        broker = A.but(addr=f"127.31.0.3:{listener.getsockname()[1]}")
        over = Connection(server.port, source="127.31.0.3")
        assert broker.register(over).code == 0
        over.reset()
        stays(lambda: listed(server, broker.addr), for_s=1.5)
        again = Connection(server.port, source="127.31.0.3")
        assert broker.register(again).code == 0
    again.reset()  # now no process listens any more
    eventually(lambda: not listed(server, broker.addr))
    assert [entry["cause"] for entry in removals(server, server.keys, broker.addr)] == ["lost"]
