"""The master of a namespace's slot, asked of real Clusters by the sync and the async client."""

import asyncio
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError

from registry.keys import Keys
from registry.store.connect import connect, connect_async, connect_follower, connect_queue
from registry.store.slot_master import slot_of
from testbed.redis_servers import free_ports
from testbed.topologies import cluster

NAMESPACES = ("a", "b", "c", "default", "Prod-1.x")


def key(namespace: str) -> str:
    return Keys(namespace).brokers


async def _written(url: str, namespace: str) -> list[str]:
    names: list[str] = []
    for make in (connect_async, connect_follower):
        async with make(url, namespace) as store:
            await store.sadd(key(namespace), make.__name__)
            names += map(str, await store.smembers(key(namespace)))
    return names


@pytest.mark.parametrize("endpoint", ["ip", "unknown-endpoint"])
def test_each_namespace_has_its_master(tmp_path: Path, endpoint: str) -> None:
    with cluster(tmp_path) as redis:
        for server in redis.servers:
            server.client.config_set("cluster-preferred-endpoint-type", endpoint)
        masters = {redis.master_of(slot_of(namespace)).port for namespace in NAMESPACES}
        assert len(masters) == 3, "namespaces on each of the masters"
        for namespace in NAMESPACES:
            with connect(redis.url, namespace) as store:
                store.sadd(key(namespace), "connect")
            assert {"connect", "connect_async"} < set(asyncio.run(_written(redis.url, namespace)))


def test_no_server_to_ask() -> None:
    one, two = free_ports(2)
    url = f"redis+cluster://127.0.0.1:{one},127.0.0.1:{two}"
    with (
        connect(url, "a") as store,
        pytest.raises(ConnectionError, match="no Sentinel or server knows the master of slot"),
    ):
        store.ping()
    with pytest.raises(ConnectionError, match="no Sentinel or server knows the master of slot"):
        asyncio.run(_written(url, "a"))


def test_rq_on_a_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="RQ cannot work on a Redis Cluster"):
        connect_queue("redis+cluster://127.0.0.1")
