"""The name servers that peers are run against: this one, and Java's as the reference."""

import signal
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from rocketmq_remoting.cluster import ClusterInfo, decode_cluster_info
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.route import TopicRouteData, decode_route
from testbed.certificates import Certificates
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.ports import free_port
from testbed.process import Process
from testbed.process_tree import children, command_line
from testbed.properties import write_properties
from testbed.rocketmq.releases import release
from testbed.rocketmq.stage import Stage

Kind = Literal["ours", "java"]
REFERENCE = "5.5.0"
COMMAND = Path(sys.executable).with_name("mqnamesrv")
BOOT_S = 90.0
BOOTED = r"The Name Server boot success\. serializeType=\w+, address [0-9.]+:(\d+)"
REMOTING = "mqnamesrv-remoting"
"""In the title of the processes that speak remoting (mqnamesrv.gunicorn_remoting)."""
V5_5_0 = 513


class Addressed(Protocol):
    """One or more name servers that peers can use."""

    @property
    def address(self) -> str:
        """Return their namesrvAddr."""


class Several(Struct, frozen=True):
    """Independent name servers; peers get the addresses of all."""

    servers: Sequence[Addressed]

    @property
    def address(self) -> str:
        """Return their addresses, separated by semicolons."""
        return ";".join(server.address for server in self.servers)


class NameServer:
    """A running name server; each request goes over a new connection."""

    def __init__(self, kind: Kind, process: Process, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.kind = kind
        self.process = process
        self.port = port
        self._tls = tls

    @property
    def address(self) -> str:
        """Return its address."""
        return f"127.0.0.1:{self.port}"

    def route(self, topic: str) -> TopicRouteData | None:
        """Return the route that a 5.5.0 client gets (105); None for "no such topic"."""
        connection = Connection(self.port, tls=self._tls)
        try:
            reply = connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, version=V5_5_0)
        finally:
            connection.close()
        assert reply.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), reply
        return decode_route(reply.body) if reply.code == ResponseCode.SUCCESS else None

    def cluster(self) -> ClusterInfo:
        """Return the cluster info (106)."""
        connection = Connection(self.port, tls=self._tls)
        try:
            return decode_cluster_info(connection.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)
        finally:
            connection.close()

    def brokers(self, name: str) -> dict[int, str]:
        """Return the addresses of one broker name by broker id."""
        data = self.cluster().broker_addr_table.get(name)
        return data.broker_addrs if data else {}

    def await_brokers(self, name: str, *ids: int, within_s: float = 30) -> None:
        """Wait until these are the broker ids listed under a name."""
        eventually(lambda: set(self.brokers(name)) == set(ids), within_s)

    def reload(self) -> None:
        """Replace the workers of this server (SIGHUP)."""
        self.process.signal(signal.SIGHUP)

    def workers(self) -> set[int]:
        """Return the process ids of this server's remoting workers, the children of their gunicorn."""
        masters = [pid for pid in children(self.process.pid) if REMOTING in command_line(pid)]
        return {worker for master in masters for worker in children(master)}


def serve(
    stage: Stage,
    kind: Kind,
    properties: Mapping[str, str] | None = None,
    *,
    name: str = "",
    certificates: Certificates | None = None,
    env: Mapping[str, str] | None = None,
) -> NameServer:
    """Start a name server of that kind with these properties; with certificates it demands them of its peers.

    Without, what it asks of them is the stage's. `env` is for this server, besides what every process there has."""
    name = name or f"{kind}-server"
    given = {"bindAddress": "127.0.0.1", "enableShutdownGracefully": "true"} | dict(properties or {})
    access = stage.access
    tls = certificates.server_properties if certificates else access.tls
    if kind == "ours":
        process = _start_ours(stage, name, {**access.rules, **given}, tls, env or {})
    else:
        process = _start_java(stage, name, given, tls)
    port = int(process.await_printed(BOOTED, BOOT_S)[1])
    return NameServer(kind, process, port, None if certificates else access.observer)


def serve_file(stage: Stage, path: Path, env: Mapping[str, str], *, name: str) -> NameServer:
    """Start this server with an existing file; the variables override it."""
    own = {"MQNS_LISTEN_PORT": "0", "MQNS_HTTP_PORT": "0", "MQNS_DATA_DIR": str(stage.folder / name / "data")}
    process = stage.start(name, [str(COMMAND), "-c", str(path)], env=own | dict(env))
    return NameServer("ours", process, int(process.await_printed(BOOTED, BOOT_S)[1]))


def serve_4x(stage: Stage, version: str, properties: Mapping[str, str] | None = None) -> NameServer:
    """Start Java's name server of a release that prints neither bind address nor port."""
    port = free_port()
    given = {"listenPort": str(port)} | dict(properties or {})
    path = write_properties(stage.folder / f"java-{version}" / "namesrv.conf", given)
    main = "org.apache.rocketmq.namesrv.NamesrvStartup"
    process = stage.java(f"java-{version}", release(version), main, "-c", str(path), peer=None, heap_mb=128)
    process.await_printed(r"The Name Server boot success", BOOT_S)
    return NameServer("java", process, port)


def _start_ours(
    stage: Stage,
    name: str,
    properties: Mapping[str, str],
    tls: Mapping[str, str],
    env: Mapping[str, str],
) -> Process:
    own = {
        "accessProfile": "java",
        "listenPort": "0",
        "httpPort": "0",
        "remotingWorkers": "2",
        "dataDir": str(stage.folder / name / "data"),
    }
    mode = {"tls.server.mode": "enforcing"} if tls else {}
    path = write_properties(stage.folder / name / "namesrv.conf", own | dict(properties) | dict(tls) | mode)
    return stage.start(name, [str(COMMAND), "-c", str(path)], env=env)


def _start_java(stage: Stage, name: str, properties: Mapping[str, str], tls: Mapping[str, str]) -> Process:
    folder = stage.folder / name
    path = write_properties(folder / "namesrv.conf", {"listenPort": str(free_port())} | dict(properties))
    options = []
    if tls:
        tls_path = write_properties(folder / "tls.properties", tls)
        options = ["-Dtls.server.mode=enforcing", f"-Dtls.config.file={tls_path}"]
    main = "org.apache.rocketmq.namesrv.NamesrvStartup"
    return stage.java(
        name, release(REFERENCE), main, "-c", str(path), peer=None, heap_mb=128, options=options
    )
