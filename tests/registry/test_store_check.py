"""What is said of a Redis that may lose or refuse tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.drivers import run
from registry.store.check import refusal, replica_of, warnings
from registry.store.connect import connect
from testbed.redis_servers import HOST, Server, free_ports, running

GOOD: dict[str, object] = {"appendonly": "yes", "maxmemory": "64mb", "maxmemory-policy": "noeviction"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    [port] = free_ports(1)
    server = Server(tmp_path_factory.mktemp("redis"), port, {"port": port})
    with running(server):
        yield server


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"maxmemory": 0, "maxmemory-policy": "allkeys-lru"}, []),
        ({"maxmemory-policy": "volatile-ttl"}, ["maxmemory-policy is volatile-ttl: "]),
        ({"appendonly": "no"}, ["appendonly is off: "]),
        ({"maxmemory": "100kb"}, ["bytes of maxmemory are used"]),
        ({"appendonly": "no", "maxmemory-policy": "allkeys-lfu"}, ["maxmemory-policy is allkeys-lfu", "appendonly"]),
    ],
    ids=["good", "no bound", "evicts", "not kept", "nearly full", "two at once"],
)  # fmt: skip
def test_each_weakness_is_reported(server: Server, options: dict[str, object], expected: list[str]) -> None:
    for name, value in (GOOD | options).items():
        server.client.config_set(name, value)  # type: ignore[arg-type]
    _expect(server.port, expected)


@pytest.mark.parametrize(
    ("bound", "policy", "allowed", "refused"),
    [
        ("64mb", "allkeys-lru", False, True),
        ("64mb", "volatile-ttl", False, True),
        ("64mb", "allkeys-lru", True, False),
        ("64mb", "noeviction", False, False),
        (0, "allkeys-lru", False, False),
    ],
)
def test_a_store_that_evicts_is_refused(
    server: Server, bound: str | int, policy: str, allowed: bool, refused: bool
) -> None:
    server.client.config_set("maxmemory", bound)
    server.client.config_set("maxmemory-policy", policy)
    with connect(f"redis://{HOST}:{server.port}") as store:
        text = refusal(store, allow_evicting=allowed)
    assert (text is not None) is refused
    assert text is None or (policy in text and "allowEvictingStore" in text)


def test_replication_that_may_split(tmp_path: Path) -> None:
    first, second = free_ports(2)
    master = Server(tmp_path / "1", first, {"port": first, **GOOD})
    replica = Server(
        tmp_path / "2",
        second,
        {"port": second, **GOOD, "replicaof": f"{HOST} {first}", "repl-diskless-sync-delay": 0},
    )
    with running(master, replica):
        while not master.client.wait(1, 1000):
            pass
        _expect(second, ["role is not master"])
        assert [run(replica_of(), one.client) for one in (master, replica)] == [None, f"{HOST}:{first}"]
        _expect(first, ["min-replicas-to-write is 0"])
        master.client.config_set("min-replicas-to-write", 1)
        _expect(first, [])


def _expect(port: int, expected: list[str]) -> None:
    with connect(f"redis://{HOST}:{port}") as store:
        lines = warnings(store)
    assert len(lines) == len(expected)
    assert all(text in line for text, line in zip(expected, lines, strict=True)), lines
