"""Workers are replaced under load, and no request fails."""

import asyncio
import itertools
import signal
from collections.abc import Callable

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.broker import Broker, Topic
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.load import Client, Paced
from testbed.nameserver import NameServer
from testbed.processes import Family, send

BROKERS = 50
LOOKUPS_PER_S, CONNECTIONS = 2000, 400
TOPICS = tuple(Topic(f"Topic{i}", queues=i + 1) for i in range(8))  # each route differs
PHASE_S = 2.0


def brokers() -> list[Broker]:
    """Return masters that do not listen: they would be removed at the end of their connection."""
    return [
        Broker(name=f"broker-{i}", addr=f"127.30.{i}.1:10911", ha="", topics=TOPICS) for i in range(BROKERS)
    ]


@pytest.mark.timeout(120)
def test_no_route_changes_while_workers_are_reloaded_stopped_and_killed(
    launch: Callable[..., NameServer],
) -> None:
    server = launch()
    members = brokers()
    over = Connection(server.port)
    for broker in members:
        assert broker.register(over).code == 0
    with server.store() as store:
        before = store.xlen(server.keys.events)
        lookups, heartbeats = asyncio.run(_under_load(server, members))
        assert store.xlen(server.keys.events) == before
        assert store.scard(server.keys.brokers) == BROKERS
    assert [failure for paced in lookups + heartbeats for failure in paced.failures] == []
    seen = sum((paced.answers for paced in lookups), start=type(lookups[0].answers)())
    assert {code for code, _ in seen} == {0}
    assert len(seen) == len(TOPICS)
    assert seen.total() > 0.5 * LOOKUPS_PER_S * 4 * PHASE_S  # a busy machine sends less
    assert sum(paced.client.reconnects for paced in lookups) > CONNECTIONS
    assert {code for paced in heartbeats for code, _ in paced.answers} == {0}


async def _under_load(server: NameServer, members: list[Broker]) -> tuple[list[Paced], list[Paced]]:
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
    heartbeats = [
        Paced(
            Client(server.port),
            RequestCode.BROKER_HEARTBEAT,
            broker.identity(),
            every_s=1.0,
            start_s=i / BROKERS,
        )
        for i, broker in enumerate(members)
    ]
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for paced in lookups + heartbeats:
            group.create_task(paced.run(over))
        for disturb in (_reload, _reload, _terminate_one, _kill_one):
            await asyncio.sleep(PHASE_S)
            await asyncio.to_thread(disturb, server)
        await asyncio.sleep(PHASE_S)
        over.set()
    return lookups, heartbeats


def _reload(server: NameServer) -> None:
    family = Family.of(server.pid)
    send(signal.SIGHUP, family.remoting_master)
    eventually(lambda: _replaced(server, family))


def _terminate_one(server: NameServer) -> None:
    family = Family.of(server.pid)
    send(signal.SIGTERM, family.remoting_workers[0])
    eventually(lambda: _changed(server, family))


def _kill_one(server: NameServer) -> None:
    family = Family.of(server.pid)
    send(signal.SIGKILL, family.remoting_workers[0])
    eventually(lambda: _changed(server, family))


def _replaced(server: NameServer, old: Family) -> bool:
    new = Family.of(server.pid).remoting_workers
    return len(new) == server.workers and not set(new) & set(old.remoting_workers)


def _changed(server: NameServer, old: Family) -> bool:
    new = Family.of(server.pid).remoting_workers
    return len(new) == server.workers and old.remoting_workers[0] not in new
