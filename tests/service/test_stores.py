"""The name server on Redis with Sentinels, Redis Cluster and TLS: failover of masters, migration of slots."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from registry.keys import Keys
from registry.store.connect import connect
from registry.store.rights import QUEUE_RULES, store_rules
from registry.store.slot_master import slot_of
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import Broker, Topic
from testbed.certificates import make_certificates
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.redis_servers import HOST, Server, command, free_ports, running
from testbed.topologies import Cluster, cluster, watched
from tests.registry.check_tables import check_tables

BROKERS = [
    Broker(name=f"b{i}", addr=f"127.30.{i}.1:10911", ha="", topics=(Topic("T", queues=i + 1), Topic(f"T{i}")))
    for i in range(20)
]
OTHERS = [
    Broker(name=f"o{i}", addr=f"127.31.{i}.1:10911", ha="", topics=(Topic("O"), Topic(f"O{i}")))
    for i in range(60)
]
ABSENT = Broker(name="absent", addr="127.32.0.1:10911")
ALL_NAMES = {broker.name for broker in BROKERS}
RECOVERS_WITHIN_S = 30.0


@contextmanager
def serving(folder: Path, url: str, **options: str) -> Iterator[tuple[NameServer, Connection]]:
    """Yield a name server and the connection of all brokers, which do not listen: its end would remove them."""
    server = NameServer(folder / "server", options, url=url, namespace="prod").start()
    try:
        over = Connection(server.port)
        registered(server, over)
        yield server, over
        over.close()
    finally:
        server.stop()


def registered(server: NameServer, over: Connection) -> None:
    """Register all brokers, the last one twice; then look up their routes at every worker."""
    for broker in (*BROKERS, BROKERS[-1]):
        eventually(lambda: broker.register(over).code == 0, RECOVERS_WITHIN_S)  # noqa: B023
    asked: set[int] = set()

    def all_are_right() -> bool:
        with closing(Connection(server.port)) as connection:  # the kernel chooses the worker
            if routed_over(connection) == ALL_NAMES:
                asked.add(server.worker_of(connection))
        return len(asked) == server.workers

    eventually(all_are_right, RECOVERS_WITHIN_S)


def routed(server: NameServer) -> set[str]:
    """Return the brokers in the route of the topic that all have, over a new connection."""
    with closing(Connection(server.port)) as connection:
        return routed_over(connection)


def routed_over(connection: Connection) -> set[str]:
    reply = connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
    return {b.name for b in BROKERS if f'"brokerName":"{b.name}"'.encode() in reply.body}


def leaves(server: NameServer, over: Connection) -> None:
    """Unregister one broker, and wait until the route is without it."""
    eventually(lambda: BROKERS[0].unregister(over).code == 0, RECOVERS_WITHIN_S)
    eventually(lambda: routed(server) == ALL_NAMES - {BROKERS[0].name})


@contextmanager
def on_cluster(folder: Path) -> Iterator[tuple[Cluster, NameServer, Connection]]:
    """Yield a Cluster and a name server, whose job queue is on another Redis."""
    [port] = free_ports(1)
    queue = Server(folder / "queue", port, {"port": port})
    with (
        cluster(folder) as redis,
        running(queue),
        serving(folder, redis.url, rqRedisUrl=f"redis://{HOST}:{port}") as (server, over),
    ):
        yield redis, server, over


@pytest.mark.timeout(120)
def test_a_master_under_sentinels_dies(tmp_path: Path) -> None:
    with watched(tmp_path) as redis, serving(tmp_path, redis.url) as (server, over):
        redis.await_replicas()
        redis.master().process.stop()
        assert routed(server) == ALL_NAMES, "cached routes are served without a store"
        registered(server, over)
        leaves(server, over)


@pytest.mark.timeout(120)
def test_a_master_of_a_cluster_dies(tmp_path: Path) -> None:
    with on_cluster(tmp_path) as (redis, server, over):
        redis.await_replicas()
        redis.master_of(slot_of("prod")).process.stop()
        assert routed(server) == ALL_NAMES
        registered(server, over)
        leaves(server, over)


@pytest.mark.timeout(300)
def test_a_slot_moves_key_by_key(tmp_path: Path) -> None:
    """No script sees a table with keys on another master: a request is refused, not done by half.

    A request that is refused takes 0.1 s. In which order the keys go, and so how many are, the engine decides: with
    Redis 7.0 few, with Valkey 9 nearly half of all, a minute's worth."""
    with on_cluster(tmp_path) as (redis, server, over):
        slot = slot_of("prod")
        source = redis.master_of(slot)
        target = next(one for one in redis.masters() if one is not source)
        cold = iter(BROKERS)  # topics that no worker has been asked for yet
        leavers = iter([broker for broker in OTHERS if broker.register(over).code == 0])
        newcomers = iter([broker.but(name=f"new-{broker.name}") for broker in OTHERS])
        refused = 0

        def look() -> None:
            nonlocal refused
            assert routed(server) == ALL_NAMES
            broker = next(cold, BROKERS[0])
            reply = over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": broker.topics[1].name})
            assert reply.code in (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
            assert reply.code or f'"brokerName":"{broker.name}"'.encode() in reply.body
            changed = broker.but(counter=broker.counter + 1, topics=(*broker.topics, Topic("More")))
            codes = {one.register(over).code for one in (broker, changed, next(newcomers, BROKERS[1]))}
            codes.add(next(leavers, ABSENT).unregister(over).code)
            assert codes <= {ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR}
            refused += ResponseCode.SYSTEM_ERROR in codes

        redis.migrate(slot, target, look)
        assert refused, "nothing was tried while keys were on their way"
        assert command(source, "CLUSTER", "COUNTKEYSINSLOT", slot) == 0
        with connect(redis.url, "prod") as store:
            check_tables(store, Keys("prod"), clean=False)
        registered(server, over)
        leaves(server, over)


@pytest.mark.needs("redis-server")
def test_tls_and_the_least_rights(tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "tls").folder
    [port] = free_ports(1)
    tls = {
        "port": 0,
        "tls-port": port,
        "tls-ca-cert-file": files / "ca.pem",
        "tls-cert-file": files / "server.pem",
        "tls-key-file": files / "server.key",
        "user namesrv": f"on >secret {store_rules(['prod'])}",
        "user jobs": f"on >other {QUEUE_RULES}",
        "user default": "off",
    }
    url = (
        f"rediss://{HOST}:{port}?ssl_ca_certs={files / 'ca.pem'}"
        f"&ssl_certfile={files / 'client.pem'}&ssl_keyfile={files / 'client.key'}"
    )
    logins = {"redisUsername": "namesrv", "redisPassword": "secret"}
    queue = {"rqRedisUrl": url, "rqRedisUsername": "jobs", "rqRedisPassword": "other"}
    redis = Server(tmp_path / "redis", port, tls)
    with running(redis), serving(tmp_path, url, **logins, **queue) as (server, over):
        leaves(server, over)
