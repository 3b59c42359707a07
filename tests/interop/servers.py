"""The name servers that peers are run against: ours, and Java's own as the reference."""

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from remoting.cluster import ClusterInfo, decode_cluster_info
from remoting.codes import RequestCode, ResponseCode
from remoting.route import TopicRouteData, decode_route
from tests.harness.connection import Connection
from tests.harness.patience import eventually
from tests.harness.process_tree import children, command_line
from tests.interop.certificates import Certificates
from tests.interop.ports import free_port
from tests.interop.process import Process
from tests.interop.releases import release
from tests.interop.stage import Stage, write_properties

Kind = Literal["ours", "java"]
REFERENCE = "5.5.0"
COMMAND = Path(sys.executable).with_name("mqnamesrv")
BOOT_S = 30.0
BOOTED = r"The Name Server boot success\. serializeType=\w+, address [0-9.]+:(\d+)"
REMOTING = "mqnamesrv-remoting"
"""In the title of the processes that speak remoting (launcher.gunicorn_remoting)."""
V5_5_0 = 513


class Addressed(Protocol):
    """What peers can be told to ask."""

    @property
    def address(self) -> str:
        """Their namesrvAddr."""


class Several(Struct, frozen=True):
    """Name servers that know nothing of each other; peers are told all."""

    servers: Sequence[Addressed]

    @property
    def address(self) -> str:
        """One after the other."""
        return ";".join(server.address for server in self.servers)


class NameServer:
    """A running name server; looks at it go over a connection of their own."""

    def __init__(self, kind: Kind, process: Process, port: int) -> None:
        self.kind = kind
        self.process = process
        self.port = port

    @property
    def address(self) -> str:
        """What peers are told."""
        return f"127.0.0.1:{self.port}"

    def route(self, topic: str) -> TopicRouteData | None:
        """What a 5.5.0 client is answered (105); None for "no such topic"."""
        connection = Connection(self.port)
        try:
            answer = connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, version=V5_5_0)
        finally:
            connection.close()
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), answer
        return decode_route(answer.body) if answer.code == ResponseCode.SUCCESS else None

    def cluster(self) -> ClusterInfo:
        """What everybody is answered (106)."""
        connection = Connection(self.port)
        try:
            return decode_cluster_info(connection.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)
        finally:
            connection.close()

    def brokers(self, name: str) -> dict[int, str]:
        """Broker id -> address of one broker name."""
        data = self.cluster().broker_addr_table.get(name)
        return data.broker_addrs if data else {}

    def await_brokers(self, name: str, *ids: int, within_s: float = 30) -> None:
        """Wait until these are the broker ids listed under a name."""
        eventually(lambda: set(self.brokers(name)) == set(ids), within_s)

    def reload(self) -> None:
        """Ours: new workers in place of the old ones (SIGHUP)."""
        self.process.signal(signal.SIGHUP)

    def workers(self) -> set[int]:
        """Ours: process ids of the remoting workers, the children of their gunicorn."""
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

    `env` is for ours, besides what every process of a stage has."""
    name = name or f"{kind}-server"
    given = {"bindAddress": "127.0.0.1", "enableShutdownGracefully": "true"} | dict(properties or {})
    tls = certificates.server_properties if certificates else {}
    if kind == "ours":
        process = _start_ours(stage, name, given, tls, env or {})
    else:
        process = _start_java(stage, name, given, tls)
    return NameServer(kind, process, int(process.await_printed(BOOTED, BOOT_S)[1]))


def serve_file(stage: Stage, path: Path, env: Mapping[str, str], *, name: str) -> NameServer:
    """Start ours with a file that is there, and what these variables say otherwise."""
    own = {"MQNS_LISTEN_PORT": "0", "MQNS_HTTP_PORT": "0", "MQNS_DATA_DIR": str(stage.folder / name / "data")}
    process = stage.start(name, [str(COMMAND), "-c", str(path)], env=own | dict(env))
    return NameServer("ours", process, int(process.await_printed(BOOTED, BOOT_S)[1]))


def serve_4x(stage: Stage, version: str, properties: Mapping[str, str] | None = None) -> NameServer:
    """Java's name server of a release that tells neither bind address nor port."""
    port = free_port()
    given = {"listenPort": str(port)} | dict(properties or {})
    path = write_properties(stage.folder / f"java-{version}" / "namesrv.conf", given)
    main = "org.apache.rocketmq.namesrv.NamesrvStartup"
    process = stage.java(f"java-{version}", release(version), main, "-c", str(path), heap_mb=128)
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
    return stage.java(name, release(REFERENCE), main, "-c", str(path), heap_mb=128, options=options)
