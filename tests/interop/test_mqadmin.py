"""Every mqadmin command that reaches a name server prints the same with ours as with Java's 5.5.0.

One set of brokers registers with both, so that nothing but the name server differs."""

from pathlib import Path

import pytest
from msgspec import Struct

from testbed.eventually import PATIENCE_S, eventually
from testbed.ports import broker_port
from testbed.properties import write_properties
from testbed.rocketmq.admin import Admin, Output, run_command, start_command
from testbed.rocketmq.brokers import BOOT_S, Broker, BrokerConfig, properties, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release, dashed, release
from testbed.rocketmq.servers import Kind, NameServer, Several, serve
from testbed.rocketmq.stage import Stage
from tests.interop.commands import CASES, PATIENT, Case
from tests.interop.differences import normalised

SIDES = ("java", "ours")
ENDLESS = 1_000_000
CONTAINED = "contained"
"""Name and cluster of the broker in the container."""
Servers = tuple[NameServer, NameServer]


class Tools(Struct, frozen=True):
    """mqadmin of one release, with a master and a slave of that release in a cluster of their own."""

    stage: Stage
    release: Release
    admin: Admin
    master: Broker

    @property
    def words(self) -> dict[str, str]:
        """What command lines may name; `version` tells the clients' topics of the releases apart."""
        return {
            "cluster": self.master.config.cluster,
            "broker": self.master.config.name,
            "master": self.master.address,
            "version": dashed(self.release.version),
        }


@pytest.fixture(scope="module")
def servers(stage: Stage, kind: Kind) -> Servers:
    """Java's, and the one that shall print the same."""
    return serve(stage, "java", name="reference"), serve(stage, kind, name="compared")


@pytest.fixture(scope="module")
def tools_5(stage: Stage, release_5: Release, servers: Servers) -> Tools:
    master = _master(stage, release_5, servers)
    return _with_clients(Tools(stage, release_5, Admin(stage, release_5), master), servers)


@pytest.fixture(scope="module")
def tools_4(stage: Stage, release_4: Release, servers: Servers) -> Tools:
    master = _master(stage, release_4, servers)
    return _with_clients(Tools(stage, release_4, Admin(stage, release_4), master), servers)


@pytest.fixture(scope="module")
def tools_4_9_8(stage: Stage, tools_4: Tools, servers: Servers) -> Tools:
    """There is no broker of 4.9.8."""
    of = release("4.9.8")
    return _with_clients(Tools(stage, of, Admin(stage, of), tools_4.master), servers)


def _master(stage: Stage, release: Release, servers: Servers) -> Broker:
    """The master of a pair of brokers."""
    name, cluster = f"broker-{dashed(release.version)}", f"Cluster-{dashed(release.version)}"
    configs = [BrokerConfig(release, name, number, cluster=cluster) for number in (0, 1)]
    master, _ = start_brokers(stage, servers, configs)
    for server in servers:
        server.await_brokers(name, 0, 1)
    return master


def _with_clients(tools: Tools, servers: Servers) -> Tools:
    """A consumer and a producer that stay, for the commands that ask for them."""
    watched, paced = f"Watched-{dashed(tools.release.version)}", f"Paced-{dashed(tools.release.version)}"
    for topic in (watched, paced):
        tools.admin(servers[1], "updateTopic", "-b", tools.master.address, "-t", topic, "-r", "4", "-w", "4")
    clients = Clients(tools.stage, tools.release, servers[1])
    clients.start("Consume", watched, ENDLESS, ENDLESS)
    clients.start("Produce", paced, ENDLESS, 1)
    retries = f"%RETRY%consumers_of_{watched}"
    eventually(lambda: all(server.route(retries) for server in servers))
    return tools


def _cases(version: str) -> list[Case]:
    return [case for case in CASES if version in case.versions]


@pytest.mark.twice
@pytest.mark.parametrize("case", _cases("5.5.0"), ids=lambda case: case.line)
def test_5_5_0_prints_the_same(case: Case, tools_5: Tools, servers: Servers) -> None:
    _assert_same(case, tools_5, servers)


@pytest.mark.parametrize("case", _cases("4.9.7"), ids=lambda case: case.line)
def test_4_9_7_prints_the_same(case: Case, tools_4: Tools, servers: Servers) -> None:
    _assert_same(case, tools_4, servers)


@pytest.mark.parametrize("case", _cases("4.9.8"), ids=lambda case: case.line)
def test_4_9_8_prints_the_same(case: Case, tools_4_9_8: Tools, servers: Servers) -> None:
    _assert_same(case, tools_4_9_8, servers)


@pytest.mark.twice
def test_a_broker_in_a_container_comes_and_goes(tools_5: Tools, servers: Servers) -> None:
    """addBroker and removeBroker reach only the container; what it registers is seen in clusterList."""
    container, broker = _container(tools_5, servers)
    added = tools_5.admin(servers[1], "addBroker", "-c", container, "-b", str(broker))
    assert f"add broker to {container} success" in added.out
    for server in servers:
        server.await_brokers(CONTAINED, 0)
    _assert_same(Case("clusterList"), tools_5, servers)
    removed = tools_5.admin(servers[1], "removeBroker", "-c", container, "-b", f"{CONTAINED}:{CONTAINED}:0")
    assert f"remove broker from {container} success" in removed.out
    for server in servers:
        server.await_brokers(CONTAINED)
    _assert_same(Case("clusterList"), tools_5, servers)


@pytest.mark.twice
def test_cluster_rt_measures_until_it_is_ended(tools_5: Tools, servers: Servers) -> None:
    command = start_command(
        tools_5.stage,
        tools_5.release,
        servers[1],
        "clusterRT",
        "-c",
        tools_5.master.config.cluster,
        "-i",
        "1",
    )
    command.await_printed(
        rf"{tools_5.master.config.cluster}\s+{tools_5.master.config.name}\s+[\d.]+\s+[1-9]\d*\s+0\b", 40
    )


def _container(tools: Tools, servers: Servers) -> tuple[str, Path]:
    """-> the address of a broker container, started, and the file of a broker for it."""
    folder, port = tools.stage.folder / "container", broker_port()
    own = {"listenPort": str(port), "bindAddress": "127.0.0.1", "namesrvAddr": Several(servers).address}
    path = write_properties(folder / "container.conf", own)
    main = "org.apache.rocketmq.container.BrokerContainerStartup"
    process = tools.stage.java("container", tools.release, main, "-c", str(path), peer="broker", heap_mb=384)
    process.await_printed(r"boot success", BOOT_S)
    config = BrokerConfig(tools.release, CONTAINED, cluster=CONTAINED)
    settings = properties(config, broker_port(), folder, Several(servers).address)
    return f"127.0.0.1:{port}", write_properties(folder / "broker.conf", settings)


def _assert_same(case: Case, tools: Tools, servers: Servers) -> None:
    def both() -> list[list[str]]:
        return [
            normalised(case.command, _output(tools, case, server, side), server)
            for server, side in zip(servers, SIDES, strict=True)
        ]

    def same() -> bool:
        java, ours = both()
        assert ours == java
        return True

    eventually(same, PATIENCE_S if case.command in PATIENT else 0)


def _output(tools: Tools, case: Case, server: NameServer, side: str) -> Output:
    words = case.line.format(**tools.words, folder=server.process.folder, side=side).split()
    if case.single:
        return Output(run_command(tools.stage, tools.release, server, *words), "")
    return tools.admin(server, *words)
