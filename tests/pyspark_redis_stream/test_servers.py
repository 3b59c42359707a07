"""Every kind of URL, with servers that fail over and move keys while they are read."""

from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError, ResponseError

from mqpipeline.job_queue import connect_queue
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.ids import Id
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.pages import pages
from testbed.certificates import make_certificates
from testbed.eventually import eventually
from testbed.redis_servers import HOST, Server, command, free_ports, running
from testbed.topologies import Member, meet
from tests.pyspark_redis_stream.reading import Query, ids, read

ENTRIES = [f"{n}-0" for n in range(1, 301)]


def fill(redis: Redis, stream: str = "a") -> None:
    with redis.pipeline(transaction=False) as pipe:
        for entry_id in ENTRIES:
            pipe.xadd(stream, {"x": entry_id}, id=entry_id)
        pipe.execute()


@pytest.mark.needs("redis-server")
def test_tls_with_a_certificate_and_a_password(tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "tls").folder
    [port] = free_ports(1)
    tls = {"tls-port": port, "tls-ca-cert-file": files / "ca.pem", "tls-cert-file": files / "server.pem"}
    server = Server(
        tmp_path, port, {"port": 0, **tls, "tls-key-file": files / "server.key", "requirepass": "secret"}
    )
    options = {
        "url": f"rediss://{HOST}:{port}",
        "streams": "a",
        "password": "secret",
        "tlsCa": str(files / "ca.pem"),
        "tlsCert": str(files / "client.pem"),
        "tlsKey": str(files / "client.key"),
    }
    with running(server):
        with Store(options_of(options)) as store:
            for entry_id in ENTRIES:
                store.call("XADD", "a", entry_id, "x", "y" * 500)
        assert ids(read(options)) == ENTRIES
        for missing in ({"tlsCa"}, {"tlsCert", "tlsKey"}):
            refused = {name: value for name, value in options.items() if name not in missing}
            with pytest.raises(ConnectionError):
                read({**refused, "retrySeconds": "0"})


def test_a_sentinel_names_the_master(tmp_path: Path) -> None:
    *ports, port = free_ports(3)
    old, new = (
        Server(tmp_path / str(one), one, {"port": one, "repl-diskless-sync-delay": 0}) for one in ports
    )
    watching = {"sentinel monitor main": f"{HOST} {old.port} 1"}
    sentinel = Server(tmp_path / "sentinel", port, {"port": port, **watching}, "--sentinel")
    with running(old, new):
        fill(old.client)
        new.client.replicaof(HOST, old.port)
        eventually(lambda: new.client.xlen("a") == len(ENTRIES))
        with running(sentinel):
            url = f"redis+sentinel://127.0.0.9:1,{HOST}:{port}/main/0"
            query, queue = Query({"url": url, "streams": "a"}), connect_queue(url)
            assert ids(query.batch()) == ENTRIES
            assert queue.config_get("port") == {"port": str(old.port)}
            eventually(lambda: sentinel.client.sentinel_slaves("main"))
            old.process.stop()
            eventually(lambda: _fails_over(sentinel))
            eventually(lambda: new.client.role()[0] == "master")
            new.client.xadd("a", {"x": 1}, id="901-0")
            assert ids(query.batch()) == ["901-0"]
            assert queue.config_get("port") == {"port": str(new.port)}


def _fails_over(sentinel: Server) -> bool:
    """Whether it has begun; not before it has seen enough of the replica."""
    try:
        command(sentinel, "SENTINEL", "FAILOVER", "main")
    except ResponseError as error:
        if not str(error).startswith("NOGOODSLAVE"):
            raise
        return False
    return True


def test_keys_of_a_cluster_are_found_while_they_move(tmp_path: Path) -> None:
    """Two servers; the second takes the slot of one stream while that is read."""
    first, second = (Member(tmp_path, *free_ports(2)) for _ in range(2))
    with running(first, second):
        slots = (first.client.cluster("keyslot", "{a}"), first.client.cluster("keyslot", "{b}"))
        low = min(slots)
        owner = {
            "{a}": first if slots[0] < slots[1] else second,
            "{b}": second if slots[0] < slots[1] else first,
        }
        command(first, "CLUSTER", "ADDSLOTSRANGE", 0, low)
        command(second, "CLUSTER", "ADDSLOTSRANGE", low + 1, 16383)
        meet(first, second)
        for one in (first, second):
            eventually(lambda: one.client.cluster("info")["cluster_state"] == "ok")  # noqa: B023
        for name, server in owner.items():
            fill(server.client, f"{name}:events")
        options = {
            "url": f"redis+cluster://127.0.0.9:1,{HOST}:{first.port}",
            "pattern": "{*}:events",
            "retrySeconds": "10",
        }
        assert sorted(ids(read(options))) == sorted(ENTRIES * 2)
        source, target = owner["{a}"], owner["{b}"]
        settings = options_of(options)
        entry_ids: list[str] = []
        with Store(settings) as store:
            for page in pages(store, "{a}:events", Id(0), Id(10**6), 50):
                entry_ids += [one.decode() for one in page.ids.to_pylist()]
                if len(entry_ids) == 100:
                    _move(source, target, slots[0], "{a}:events")
                if len(entry_ids) == 200:
                    _assign(source, target, slots[0])
        assert entry_ids == ENTRIES
        query = Query(options)
        assert sorted(ids(query.batch())) == sorted(ENTRIES * 2)


def _move(source: Member, target: Member, slot: int, key: str) -> None:
    """The key has gone, but the slot is still the source's: a client that asks there is redirected to the other."""
    command(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.name)
    command(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.name)
    source.client.migrate(HOST, target.port, key, 0, 5000)


def _assign(source: Member, target: Member, slot: int) -> None:
    for one in (target, source):
        command(one, "CLUSTER", "SETSLOT", slot, "NODE", target.name)
