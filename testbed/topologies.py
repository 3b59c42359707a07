"""Redis with Sentinels and Redis Cluster, of real processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis.exceptions import ConnectionError, ResponseError

from testbed.eventually import eventually
from testbed.redis_servers import HOST, Server, command, free_ports, running

SERVICE = "main"
DOWN_AFTER_MS = 1000
NODE_TIMEOUT_MS = 1000
READY_WITHIN_S = 30.0
SLOTS = 16384


class Watched:
    """A master, two replicas and three Sentinels."""

    def __init__(self, folder: Path) -> None:
        *data, first, second, third = free_ports(6)
        self.servers = [
            Server(
                folder / f"redis-{port}",
                port,
                {"port": port, "appendonly": "yes", "repl-diskless-sync-delay": 0}
                | ({"replicaof": f"{HOST} {data[0]}"} if port != data[0] else {}),
            )
            for port in data
        ]
        monitor = {
            f"sentinel monitor {SERVICE}": f"{HOST} {data[0]} 2",
            f"sentinel down-after-milliseconds {SERVICE}": DOWN_AFTER_MS,
            f"sentinel failover-timeout {SERVICE}": 5000,
        }
        self.sentinels = [
            Server(folder / f"sentinel-{port}", port, {"port": port, **monitor}, "--sentinel")
            for port in (first, second, third)
        ]

    @property
    def url(self) -> str:
        """Return the URL, whose first address has no listener."""
        return (
            f"redis+sentinel://127.0.0.9:1,{','.join(f'{HOST}:{s.port}' for s in self.sentinels)}/{SERVICE}"
        )

    def master(self) -> Server:
        """Return the master that all Sentinels name and that says so itself."""

        def look() -> Server | None:
            addresses = {s.client.sentinel_get_master_addr_by_name(SERVICE, True) for s in self.sentinels}
            named = [server for server in self.servers if addresses == {(HOST, server.port)}]
            return named[0] if named and named[0].client.role()[0] == "master" else None

        return eventually(look, READY_WITHIN_S)  # type: ignore[return-value]

    def await_replicas(self, count: int = 2) -> None:
        """Wait until `count` replicas have the master's data and each Sentinel lists them and the other Sentinels."""
        master = self.master()
        eventually(lambda: master.client.wait(count, 100) >= count, READY_WITHIN_S)
        for server in self.sentinels:
            eventually(lambda: self._complete(server), READY_WITHIN_S)  # noqa: B023

    def _complete(self, sentinel: Server) -> bool:
        others = command(sentinel, "SENTINEL", "SENTINELS", SERVICE)
        replicas = command(sentinel, "SENTINEL", "REPLICAS", SERVICE)
        return len(others) == len(self.sentinels) - 1 and len(replicas) >= len(self.servers) - 1

    def fail_over(self) -> None:
        """Run SENTINEL FAILOVER, as operators do before they take a master down."""

        def begins() -> bool:
            try:
                command(self.sentinels[0], "SENTINEL", "FAILOVER", SERVICE)
            except ResponseError:
                return False
            return True

        eventually(begins, READY_WITHIN_S)


class Member(Server):
    """A server of a Cluster."""

    def __init__(self, folder: Path, port: int, bus: int) -> None:
        options = {
            "port": port,
            "cluster-enabled": "yes",
            "cluster-port": bus,
            "cluster-node-timeout": NODE_TIMEOUT_MS,
            "appendonly": "yes",
            "repl-diskless-sync-delay": 0,
        }
        super().__init__(folder / f"redis-{port}", port, options)
        self.bus = bus

    @property
    def name(self) -> str:
        return str(command(self, "CLUSTER", "MYID"))


def meet(first: Member, *others: Member) -> None:
    """Join servers to one Cluster; return when each knows all.

    A handshake that is not over within the node timeout is forgotten: the first server gets the command again."""
    members = (first, *others)

    def all_met() -> bool:
        for other in others:
            if not _knows(first, other):
                command(first, "CLUSTER", "MEET", HOST, other.port, other.bus)
        return all(_knows(member, other) for member in members for other in members)

    eventually(all_met, READY_WITHIN_S)


def _knows(member: Member, other: Member) -> bool:
    nodes = str(command(member, "CLUSTER", "NODES"))
    return any(other.name in line and "handshake" not in line for line in nodes.splitlines())


class Cluster:
    """Three masters with a third of the slots each, and a replica of each."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(12)
        self.servers = [Member(folder, port, bus) for port, bus in zip(ports[:6], ports[6:], strict=True)]

    @property
    def url(self) -> str:
        """Return the URL, whose first address has no listener."""
        return f"redis+cluster://127.0.0.9:1,{','.join(f'{HOST}:{s.port}' for s in self.servers[:3])}"

    def form(self) -> None:
        """Assign slots, join nodes, add replicas; wait until every replica has its master's data."""
        masters, replicas = self.servers[:3], self.servers[3:]
        for i, server in enumerate(masters):
            command(server, "CLUSTER", "ADDSLOTSRANGE", i * SLOTS // 3, (i + 1) * SLOTS // 3 - 1)
            command(server, "CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        meet(*self.servers)
        for master, replica in zip(masters, replicas, strict=True):
            command(replica, "CLUSTER", "REPLICATE", master.name)
        self.await_replicas()

    def await_replicas(self) -> None:
        """Wait until the Cluster serves every slot and each replica follows its master."""
        for server in self.servers:
            eventually(lambda: _info(server, "CLUSTER", "INFO")["cluster_state"] == "ok", READY_WITHIN_S)  # noqa: B023
            eventually(lambda: self._follows(server), READY_WITHIN_S)  # noqa: B023
        for server in self.masters():
            eventually(lambda: server.client.wait(1, 100) >= 1, READY_WITHIN_S)  # noqa: B023

    def masters(self) -> list["Member"]:
        """Return the servers whose role is master."""
        return [one for one in self.servers if _role(one) == "master"]

    def master_of(self, slot: int) -> "Member":
        """Return the master of a slot, which every running server names."""

        def look() -> Member | None:
            ports = {self._owner(one, slot) for one in self.servers if _role(one)}
            return next((one for one in self.servers if ports == {one.port}), None)

        return eventually(look, READY_WITHIN_S)  # type: ignore[return-value]

    def migrate(self, slot: int, target: "Member", pause: Any = None) -> None:
        """Move a slot key by key, as `redis-cli --cluster reshard` does; `pause` is called between two keys."""
        source = self.master_of(slot)
        command(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.name)
        command(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.name)
        while keys := command(source, "CLUSTER", "GETKEYSINSLOT", slot, 10):
            for key in keys:
                source.client.migrate(HOST, target.port, key, 0, 5000)
                if pause is not None:
                    pause()
        for member in (target, source, *self.masters()):
            command(member, "CLUSTER", "SETSLOT", slot, "NODE", target.name)

    def _follows(self, server: Server) -> bool:
        return _role(server) == "master" or server.client.info("replication")["master_link_status"] == "up"

    def _owner(self, one: Server, slot: int) -> int:
        for first, last, master, *_ in command(one, "CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return int(master[1])
        return 0


def _role(server: Server) -> str:
    """Return its ROLE, empty if it is down."""
    try:
        return str(server.client.role()[0])
    except ConnectionError:
        return ""


def _info(server: Server, *words: str) -> dict[str, str]:
    reply = command(server, *words)
    if isinstance(reply, dict):
        return reply
    return dict(line.split(":", 1) for line in str(reply).splitlines() if ":" in line)


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """Run it with every replica in step."""
    redis = Watched(folder)
    with running(*redis.servers), running(*redis.sentinels):
        redis.await_replicas()
        yield redis


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Run it with every slot served and every replica in step."""
    redis = Cluster(folder)
    with running(*redis.servers):
        redis.form()
        yield redis
