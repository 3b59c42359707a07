"""What a broker is called and how it announces itself: broker.toml, with the names of RocketMQ's broker.conf."""

import os
import re
import socket
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from client.addresses.sources import ENVIRONMENT
from client.addresses.syntax import parse_addresses
from client.errors import AddressError, ConfigError
from client.wire.zone import configured_zone
from remoting.permission import PERM_READ, PERM_WRITE
from remoting.remoting_command import SerializeType
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import METADATA_SCOPE_GLOBAL, TopicQueueMappingInfo
from remoting.version import V5_0_0, release_ordinal

MASTER_ID: Final = 0
PERIOD_MIN_MS, PERIOD_MAX_MS = 10_000, 60_000
BUDGET_4X_MS, BUDGET_5X_MS = 6_000, 24_000

_NAME, _HOST, _RELEASE = r"^\S+$", r"^\S*$", r"^[45]\.[0-9]\.[0-9]$"
_ENCODING, _FILTER_TYPE = "^(JSON|ROCKETMQ)$", "^(SINGLE|MULTI)_TAG$"
Name = Annotated[str, Meta(pattern=_NAME)]
Host = Annotated[str, Meta(pattern=_HOST)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Millis = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Perm = Annotated[int, Meta(ge=0, le=15)]


class TopicSettings(TopicConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[topics]]`: a topic within what brokers allow; queues are as many as mqadmin's updateTopic gives."""

    topic_name: Name
    read_queue_nums: Count = 8
    write_queue_nums: Count = 8
    perm: Perm = PERM_READ | PERM_WRITE
    topic_sys_flag: Count = 0
    topic_filter_type: Annotated[str, Meta(pattern=_FILTER_TYPE)] = "SINGLE_TAG"


class StaticTopicSettings(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One of `[[staticTopics]]` (5.x): `curr_id_map` says which of its queues are here, and which queue each is."""

    topic: Name
    total_queues: Count
    curr_id_map: dict[int, int]
    epoch: Count = 0
    scope: str = METADATA_SCOPE_GLOBAL

    def mapping(self, broker_name: str) -> TopicQueueMappingInfo:
        """What is announced."""
        return TopicQueueMappingInfo(
            self.topic, broker_name, self.total_queues, self.curr_id_map, self.scope, self.epoch
        )


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A broker to be announced. Fields are called as in broker.conf, in Python's spelling; defaults are Java's.

    >>> config = BrokerConfig(broker_name="broker-a", broker_ip1="127.0.0.1", namesrv_addr="127.0.0.1:9876")
    >>> config.broker_addr, config.ha_server_addr, config.period_s
    ('127.0.0.1:10911', '127.0.0.1:10912', 30.0)
    """

    broker_name: Name = msgspec.field(default_factory=socket.gethostname)
    broker_cluster_name: Name = "DefaultCluster"
    broker_id: Count = MASTER_ID
    broker_ip1: Host = msgspec.field(default="", name="brokerIP1")
    """Where clients reach it; empty: the address this machine would send from."""
    broker_ip2: Host = msgspec.field(default="", name="brokerIP2")
    """Where slaves reach its master; empty: as brokerIP1."""
    listen_port: Port = 10911
    ha_listen_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """0: the port after listenPort."""
    namesrv_addr: str = ""
    """`10.0.0.1:9876;10.0.0.2:9876`"""
    zone_name: str = ""
    zone_mode: bool = False

    register_name_server_period: Count = 30_000
    """ms; held between 10 s and 60 s."""
    register_broker_timeout_mills: Millis | None = None
    """None: 6000 for a broker of 4.x, 24000 for one of 5.x."""
    force_register: bool = True
    """Whether each round registers; else only when a name server knows another data version (322)."""
    compressed_register: bool = False
    enable_split_registration: bool = False
    split_registration_size: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 800
    enable_single_topic_register: bool = False
    """Whether a topic that changes is told by 217 (5.x)."""

    enable_slave_acting_master: bool = False
    broker_not_active_timeout_millis: Millis = 10_000
    broker_heartbeat_interval: Annotated[int, Meta(ge=100, le=2**31 - 1)] = 1_000
    compatible_with_old_name_srv: bool = True
    """Whether 322 and 105 take the place of 904 and 901."""

    broker_permission: Perm = PERM_READ | PERM_WRITE
    auto_create_topic_enable: bool = True
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: Name = "RMQ_SYS_TRACE_TOPIC"
    default_topic_queue_nums: Count = 8
    topics: tuple[TopicSettings, ...] = ()
    static_topics: tuple[StaticTopicSettings, ...] = ()

    version: Annotated[str, Meta(pattern=_RELEASE)] = "5.5.0"
    """Ours, like all that follow: the release of the broker that is played."""
    serialize_type: Annotated[str, Meta(pattern=_ENCODING)] = "JSON"
    starting_topics: bool = True
    """Whether the topics are announced that a broker makes when it starts."""
    refresh_cluster_info: bool = True
    """Whether it asks for the cluster info every 5 s, as brokers of 5.x do."""
    keep_compressed_bug: bool = True
    """Whether the header calls a compressed body of 5.x uncompressed, as those brokers do."""
    data_version_file: str = ""
    """Keeps the data version from one start to the next."""
    listen: bool = False
    """Whether listenPort is opened, for probes and pushes of name servers."""
    bind_address: str = "0.0.0.0"

    @property
    def plays_5x(self) -> bool:
        return self.ordinal >= V5_0_0

    @property
    def ordinal(self) -> int:
        """`version` as it travels in headers."""
        return release_ordinal(self.version)

    @property
    def broker_addr(self) -> str:
        return f"{self.broker_ip1}:{self.listen_port}"

    @property
    def ha_server_addr(self) -> str:
        return f"{self.broker_ip2 or self.broker_ip1}:{self.ha_listen_port or self.listen_port + 1}"

    @property
    def name_servers(self) -> tuple[str, ...]:
        return parse_addresses(self.namesrv_addr)

    @property
    def period_s(self) -> float:
        """Between two rounds."""
        return max(PERIOD_MIN_MS, min(self.register_name_server_period, PERIOD_MAX_MS)) / 1000

    @property
    def budget_s(self) -> float:
        """What a round may take."""
        usual = BUDGET_5X_MS if self.plays_5x else BUDGET_4X_MS
        return (self.register_broker_timeout_mills or usual) / 1000

    @property
    def header_type(self) -> SerializeType:
        return SerializeType[self.serialize_type]

    def checked(self) -> "BrokerConfig":
        """The same with its own address filled in. Raises ConfigError for the first value that is not allowed."""
        _converted(msgspec.to_builtins(self), "BrokerConfig")
        return self if self.broker_ip1 else msgspec.structs.replace(self, broker_ip1=local_address())


def read_config(path: Path, environ: Mapping[str, str] = os.environ) -> BrokerConfig:
    """What a TOML file says, and of name servers and zone the environment, where the file says nothing.

    Raises ConfigError, whose text names the file, the field and what is allowed."""
    try:
        read = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    zone = configured_zone(environ=environ)
    if zone and "zoneName" not in read:
        read |= {"zoneName": zone.name, "zoneMode": zone.mode}
    return _converted({"namesrvAddr": environ.get(ENVIRONMENT, "")} | read, str(path))


def checked_topic(topic: TopicConfig) -> TopicConfig:
    """The same. Raises ConfigError for one that a broker cannot have."""
    try:
        msgspec.convert(msgspec.to_builtins(topic), TopicSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"topic {topic.topic_name!r}: {_told(str(error))}") from error
    return topic


def _converted(values: dict[str, Any], where: str) -> BrokerConfig:
    try:
        config = msgspec.convert(values, BrokerConfig, str_keys=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_told(str(error))}") from error
    try:
        parse_addresses(config.namesrv_addr)
    except AddressError as error:
        raise ConfigError(f"{where}: namesrvAddr: {error}; expected host:port;host:port") from error
    _refuse_doubles(f"{where}: topics", [topic.topic_name for topic in config.topics])
    _refuse_doubles(f"{where}: staticTopics", [topic.topic for topic in config.static_topics])
    return config


def _refuse_doubles(where: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        (name, _), *_ = Counter(names).most_common(1)
        raise ConfigError(f"{where}: {name!r} is there twice")


def _told(error: str) -> str:
    """``Expected `int` <= 65535 - at `$.listenPort` `` -> `listenPort: expected int <= 65535`."""
    message, _, path = error.partition(" - at `$")
    field = path.strip("`.")
    unknown = re.fullmatch("Object contains unknown field `(.*)`", message)
    if unknown:
        kind, *_ = [kind for name, kind in _TABLES.items() if field.startswith(name)]
        allowed = ", ".join(info.encode_name for info in msgspec.structs.fields(kind))
        return f"{field and f'{field}.'}{unknown[1]}: no such field; there are {allowed}"
    missing = re.fullmatch("Object missing required field `(.*)`", message)
    if missing:
        return f"{field}.{missing[1]}: is missing"
    for pattern, meaning in _MEANINGS.items():
        message = message.replace(pattern, meaning)
    return f"{field}: {message[:1].lower()}{message[1:].replace('`', '')}"


_TABLES: Final[dict[str, type[msgspec.Struct]]] = {
    "topics": TopicSettings,
    "staticTopics": StaticTopicSettings,
    "": BrokerConfig,
}
_MEANINGS: Final = {
    f"matching regex {_NAME!r}": "without blanks, not empty",
    f"matching regex {_HOST!r}": "without blanks",
    f"matching regex {_RELEASE!r}": "like 4.9.7 or 5.5.0",
    f"matching regex {_ENCODING!r}": "JSON or ROCKETMQ",
    f"matching regex {_FILTER_TYPE!r}": "SINGLE_TAG or MULTI_TAG",
}


def local_address() -> str:
    """The IPv4 address that this machine sends from; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # reserved for documentation: any address that is not local
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
