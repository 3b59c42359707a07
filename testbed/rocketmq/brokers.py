"""Java's brokers: their configuration and processes."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rocketmq_remoting.codes import ResponseCode
from testbed.connection import Connection
from testbed.ports import HA, broker_port
from testbed.process import Process
from testbed.properties import write_properties
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import Addressed, Several
from testbed.rocketmq.stage import Stage

MAIN = "org.apache.rocketmq.broker.BrokerStartup"
BOOTED = r"The broker\[.*\] boot success"
BOOT_S = 60.0
END_S = 60.0
MASTER_ID = 0
SMALL_STORE = {
    "mappedFileSizeCommitLog": "16777216",
    "mappedFileSizeConsumeQueue": "120000",
    "maxHashSlotNum": "10000",
    "maxIndexNum": "40000",
    "mappedFileSizeTimerLog": "1048576",
    "diskMaxUsedSpaceRatio": "95",
}
PATIENT = {"waitTimeMillsInSendQueue": "5000", "osPageCacheBusyTimeOutMills": "10000"}
"""A broker's own limits for a machine that is slow, 200 and 1000 ms as it comes, would refuse sends by themselves."""
QUIET = {"transactionMetricFlushInterval": "500", "timerFlushIntervalMs": "60000"}
"""Without them one of 5.5.0 keeps a core busy for its first 10 s (TransactionMetricsFlushService waits in a loop for
that interval), and a quarter of one from then on (TimerMessageStore writes a wheel of 38 MB each second)."""


UPDATE_AND_CREATE_TOPIC = 17
"""A request of brokers."""


class BrokerConfig(Struct, frozen=True):
    """One broker. `settings` are its properties beyond those that every broker here has."""

    release: Release
    name: str
    id: int = MASTER_ID
    cluster: str = "DefaultCluster"
    settings: Mapping[str, str] = {}


class Broker:
    """A broker that has been started; it can be stopped and started again at its place."""

    def __init__(
        self, stage: Stage, config: BrokerConfig, servers: Sequence[Addressed], options: Sequence[str] = ()
    ) -> None:
        self.config = config
        self.port = broker_port()
        self._stage = stage
        self._servers = Several(servers)
        self._options = options
        self.process = self.start()

    @property
    def address(self) -> str:
        """Return the address that it registers."""
        return f"127.0.0.1:{self.port}"

    @property
    def ha_port(self) -> int:
        """Return the port from which its slaves fetch the commit log."""
        return self.port + HA

    @property
    def settings_file(self) -> Path:
        """Return its broker.conf, which it rewrites when its settings are changed."""
        return self._stage.folder / f"{self.config.name}-{self.config.id}" / "broker.conf"

    def start(self) -> Process:
        """Start it, again if it has ended; await_boot waits until it is up."""
        folder = self.settings_file.parent
        settings = properties(self.config, self.port, folder, self._servers.address)
        path = write_properties(self.settings_file, settings)
        self.process = self._stage.java(
            folder.name,
            self.config.release,
            MAIN,
            "-c",
            str(path),
            peer="broker",
            heap_mb=384,
            options=["-Dlog.level=INFO", *self._options],
        )
        return self.process

    def await_boot(self) -> "Broker":
        """Wait until it has registered for the first time and serves."""
        self.process.await_printed(BOOTED, BOOT_S)
        return self

    def create_topic(self, topic: str) -> None:
        """Create a topic of four queues and wait until the name servers know it; mqadmin would ask them first."""
        connection = Connection(self.port)
        try:
            reply = connection.ask(UPDATE_AND_CREATE_TOPIC, new_topic(topic), within_s=BOOT_S)
        finally:
            connection.close()
        assert reply.code == ResponseCode.SUCCESS, reply

    def restart(self, servers: Sequence[Addressed]) -> None:
        """Shut it down, and start it with these name servers."""
        self.shut_down()
        self._servers = Several(servers)
        self.start()
        self.await_boot()

    def freeze(self) -> None:
        """Send SIGSTOP: its connections stay, as of a hung machine."""
        self.process.signal(signal.SIGSTOP)

    def shut_down(self) -> None:
        """Shut it down in order."""
        self.process.ask_to_end(END_S)


def new_topic(topic: str) -> dict[str, str]:
    """Return the fields of UPDATE_AND_CREATE_TOPIC."""
    return {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": "4",
        "writeQueueNums": "4",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }


def properties(config: BrokerConfig, port: int, folder: Path, name_servers: str) -> dict[str, str]:
    """Return the properties of its file; the store goes to `folder`."""
    return {
        "brokerClusterName": config.cluster,
        "brokerName": config.name,
        "brokerId": str(config.id),
        "brokerRole": "SLAVE" if config.id else "ASYNC_MASTER",
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": str(port),
        "haListenPort": str(port + HA),
        **({"namesrvAddr": name_servers} if name_servers else {}),
        "storePathRootDir": str(folder / "store"),
        "storePathCommitLog": str(folder / "store" / "commitlog"),
        "defaultTopicQueueNums": "4",
        "registerNameServerPeriod": "10000",
        **SMALL_STORE,
        **PATIENT,
        **QUIET,
        **config.settings,
    }


def start_brokers(
    stage: Stage,
    servers: Sequence[Addressed],
    configs: Sequence[BrokerConfig],
    options: Sequence[str] = (),
) -> list[Broker]:
    """Start brokers side by side, in the order given, and wait for all."""
    brokers = [Broker(stage, config, servers, options) for config in configs]
    return [broker.await_boot() for broker in brokers]
