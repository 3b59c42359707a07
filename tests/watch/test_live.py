"""Watchers of a real service get what is promised while its workers are killed and replaced, and its store freezes.

`WATCH_MINUTES=20 pytest tests/watch/test_live.py -s` goes on for so long, each time with another seed."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.events.entry import EventId
from registry.events.replay import replay
from registry.events.tables import Tables
from testbed.eventually import PATIENCE_S
from testbed.nameserver import NameServer
from testbed.process_tree import command_line, family
from testbed.watchers import Fleet
from tests.mqns.cli.conftest import http_side
from tests.registry.stored import assert_replays
from tests.watch.judgement import Received, complaints
from tests.watch.recording import FILTERS, Changes, RecordedWatcher, StreamReader, come_and_go

MINUTES = float(os.environ.get("WATCH_MINUTES", "0"))
ROUND_S = 12.0
WATCHERS = 30


class Service:
    """A server with two HTTP workers, and what goes wrong with it."""

    def __init__(self, server: NameServer, store: EmbeddedStore) -> None:
        self._server, self._store = server, store

    def kill_worker(self) -> None:
        os.kill(random.choice(self._processes("worker")), signal.SIGKILL)

    def reload(self) -> None:
        os.kill(self._processes("master")[0], signal.SIGHUP)

    def freeze_store(self) -> None:
        os.kill(self._store.child.pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(self._store.child.pid, signal.SIGCONT)

    def _processes(self, role: str) -> list[int]:
        return [pid for pid in family(self._server.pid) if f"{role} [mqnamesrv-http]" in command_line(pid)]


@pytest.mark.timeout(60 * MINUTES + 180)
def test_as_promised_while_workers_end_and_the_store_stands_still(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    until, seed = time.monotonic() + 60 * MINUTES, 0
    while not seed or time.monotonic() < until:
        redis.flushall()
        server = NameServer(tmp_path / str(seed), {"httpWorkers": "2"}, url=store.url).start()
        try:
            print("\n" + _round(Service(server, store), server, redis, seed))
        finally:
            server.stop()
        seed += 1


def _round(service: Service, server: NameServer, redis: redis_py.Redis, seed: int) -> str:
    rng, keys = random.Random(seed), server.keys
    port = int(http_side(server).rpartition(":")[2])
    reader, changes = StreamReader(redis, keys), Changes(port, seed)
    watchers = [RecordedWatcher(rng.choice(FILTERS), rng.choice(["", "0-0"])) for _ in range(WATCHERS)]
    folding = RecordedWatcher("", "0-0")
    fleet = Fleet("127.0.0.1", port, [folding, *watchers])
    reader.start()
    changes.start()
    faults: list[Callable[[], None]] = [service.kill_worker, service.reload, service.freeze_store]
    try:
        end = time.monotonic() + ROUND_S
        while time.monotonic() < end:
            fleet.run(lambda: False, rng.uniform(0.5, 1.5))
            come_and_go(fleet, rng)
            rng.choice(faults)()
        changes.stop()
        newest: Any = redis.xrevrange(keys.events, count=1)
        last = str(newest[0][0])
        reached = EventId.parse(last)
        assert fleet.run(
            lambda: all(one.last_id and EventId.parse(one.last_id) >= reached for one in fleet.watchers),
            2 * PATIENCE_S,
        )
    finally:
        fleet.close()
    stream = reader.whole(last)
    for watcher in [folding, *watchers]:
        found = [*complaints(watcher.wanted, watcher.seen, stream)]
        assert found == [], (seed, watcher.path)
        assert {one.reset for one in watcher.seen if isinstance(one, Received)} <= {None, "incarnation"}
    assert_replays(redis, keys, replay(Tables(), folding.events))
    connections = sum(watcher.connections for watcher in fleet.watchers)
    return (
        f"seed {seed}: {changes.made} changes, {len(stream)} groups, {connections} connections: as promised"
    )
