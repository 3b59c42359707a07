"""Workers come and go under load, and nobody notices."""

import asyncio
import itertools
import signal
from collections.abc import Callable

import pytest

from remoting.codes import RequestCode
from tests.harness.broker import Broker, Topic
from tests.harness.connection import Connection
from tests.harness.nameserver import NameServer
from tests.harness.patience import eventually
from tests.service.load import Client, Paced
from tests.service.processes import Family, send

BROKERS = 50
LOOKUPS_PER_S, CONNECTIONS = 2000, 400
TOPICS = tuple(Topic(f"Topic{i}", queues=i + 1) for i in range(8))  # each route differs
PHASE_S = 2.0


def brokers() -> list[Broker]:
    """Masters that listen nowhere: a lost connection that were taken for a lost broker would remove them."""
    return [
        Broker(name=f"broker-{i}", addr=f"127.30.{i}.1:10911", ha="", topics=TOPICS) for i in range(BROKERS)
    ]


@pytest.mark.timeout(120)
def test_no_route_changes_while_workers_are_reloaded_stopped_and_killed(
    launch: Callable[..., NameServer],
) -> None:
    server = launch()
    everyone = brokers()
    over = Connection(server.port)
    for broker in everyone:
        assert broker.register(over).code == 0
    with server.store() as store:
        before = store.xlen(server.keys.events)
        lookups, beats = asyncio.run(_under_load(server, everyone))
        assert store.xlen(server.keys.events) == before
        assert store.scard(server.keys.brokers) == BROKERS
    assert [failure for paced in lookups + beats for failure in paced.failures] == []
    seen = sum((paced.answers for paced in lookups), start=type(lookups[0].answers)())
    assert {code for code, _ in seen} == {0}
    assert len(seen) == len(TOPICS)
    assert seen.total() > 0.8 * LOOKUPS_PER_S * 4 * PHASE_S
    assert sum(paced.client.reconnects for paced in lookups) > CONNECTIONS
    assert {code for paced in beats for code, _ in paced.answers} == {0}


async def _under_load(server: NameServer, everyone: list[Broker]) -> tuple[list[Paced], list[Paced]]:
    every_s = CONNECTIONS / LOOKUPS_PER_S
    topics = itertools.cycle(TOPICS)
    lookups = [
        Paced(
            Client(server.port),
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            {"topic": next(topics).name},
            every_s=every_s,
            start_s=every_s * i / CONNECTIONS,
        )
        for i in range(CONNECTIONS)
    ]
    beats = [
        Paced(
            Client(server.port),
            RequestCode.BROKER_HEARTBEAT,
            broker.identity(),
            every_s=1.0,
            start_s=i / BROKERS,
        )
        for i, broker in enumerate(everyone)
    ]
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for paced in lookups + beats:
            group.create_task(paced.run(over))
        for disturb in (_reload, _reload, _terminate_one, _kill_one):
            await asyncio.sleep(PHASE_S)
            await asyncio.to_thread(disturb, server)
        await asyncio.sleep(PHASE_S)
        over.set()
    return lookups, beats


def _reload(server: NameServer) -> None:
    family = Family.of(server.pid)
    send(signal.SIGHUP, family.remoting_master)
    eventually(lambda: _replaced(server, family), within_s=15)


def _terminate_one(server: NameServer) -> None:
    family = Family.of(server.pid)
    send(signal.SIGTERM, family.remoting_workers[0])
    eventually(lambda: _lost(server, family), within_s=15)


def _kill_one(server: NameServer) -> None:
    family = Family.of(server.pid)
    send(signal.SIGKILL, family.remoting_workers[0])
    eventually(lambda: _lost(server, family), within_s=15)


def _replaced(server: NameServer, old: Family) -> bool:
    new = Family.of(server.pid).remoting_workers
    return len(new) == server.workers and not set(new) & set(old.remoting_workers)


def _lost(server: NameServer, old: Family) -> bool:
    new = Family.of(server.pid).remoting_workers
    return len(new) == server.workers and old.remoting_workers[0] not in new
