"""The configuration of a broker: broker.toml, with the names of RocketMQ's broker.conf."""

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

from mqns.addresses.sources import ENVIRONMENT
from mqns.addresses.syntax import check_address, parse_addresses
from mqns.client_id import local_ip
from mqns.errors import AddressError, ConfigError
from mqns.names import MASTER_ID
from mqns.remoting.zone import configured_zone
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.remoting_command import SerializeType
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import METADATA_SCOPE_GLOBAL, TopicQueueMappingInfo
from rocketmq_remoting.typed import converted
from rocketmq_remoting.version import V5_0_0, release_ordinal

PORT_OF_ANY: Final = 1
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
    """One of `[[topics]]`: a topic within a broker's limits; the default queues are those of mqadmin updateTopic."""

    topic_name: Name
    read_queue_nums: Count = 8
    write_queue_nums: Count = 8
    perm: Perm = PERM_READ | PERM_WRITE
    topic_sys_flag: Count = 0
    topic_filter_type: Annotated[str, Meta(pattern=_FILTER_TYPE)] = "SINGLE_TAG"


class StaticTopicSettings(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One of `[[staticTopics]]` (5.x): `curr_id_map` maps queues of the topic to queues of this broker."""

    topic: Name
    total_queues: Count
    curr_id_map: dict[int, int]
    epoch: Count = 0
    scope: str = METADATA_SCOPE_GLOBAL

    def mapping(self, broker_name: str) -> TopicQueueMappingInfo:
        """Return the mapping as it is registered."""
        return TopicQueueMappingInfo(
            self.topic, broker_name, self.total_queues, self.curr_id_map, self.scope, self.epoch
        )


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A broker to register. Fields are those of broker.conf in Python's spelling; defaults are Java's.

    >>> config = BrokerConfig(broker_name="broker-a", broker_ip1="127.0.0.1", namesrv_addr="127.0.0.1:9876")
    >>> config.broker_addr, config.ha_server_addr, config.period_s
    ('127.0.0.1:10911', '127.0.0.1:10912', 30.0)
    """

    broker_name: Name = msgspec.field(default_factory=socket.gethostname)
    broker_cluster_name: Name = "DefaultCluster"
    broker_id: Count = MASTER_ID
    broker_ip1: Host = msgspec.field(default="", name="brokerIP1")
    """The host for clients; empty: the address from which this machine sends."""
    broker_ip2: Host = msgspec.field(default="", name="brokerIP2")
    """The host for slaves; empty: as brokerIP1."""
    listen_port: Port = 10911
    ha_listen_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """0: the port after listenPort."""
    namesrv_addr: str = ""
    """`10.0.0.1:9876;10.0.0.2:9876`"""
    zone_name: str = ""
    zone_mode: bool = False

    register_name_server_period: Count = 30_000
    """ms; limited to 10 s to 60 s."""
    register_broker_timeout_mills: Millis | None = None
    """None: 6000 for a broker of 4.x, 24000 for one of 5.x."""
    force_register: bool = True
    """Whether each round registers; else only if a name server has another data version (322)."""
    compressed_register: bool = False
    enable_split_registration: bool = False
    split_registration_size: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 800
    enable_single_topic_register: bool = False
    """Whether a changed topic is registered with 217 (5.x)."""

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
    """The release of the broker; this and the following fields are not in broker.conf."""
    serialize_type: Annotated[str, Meta(pattern=_ENCODING)] = "JSON"
    starting_topics: bool = True
    """Whether the topics that a broker creates at its start are registered."""
    refresh_cluster_info: bool = True
    """Whether the cluster info is requested every 5 s, as by brokers of 5.x."""
    keep_compressed_bug: bool = True
    """Whether the header of a compressed body of 5.x says uncompressed, as that of those brokers."""
    data_version_file: str = ""
    """The file that keeps the data version between starts."""
    listen: bool = False
    """Whether listenPort is opened, for probes and pushes of name servers."""
    bind_address: str = "0.0.0.0"

    @property
    def is_5x(self) -> bool:
        return self.ordinal >= V5_0_0

    @property
    def ordinal(self) -> int:
        """The ordinal of `version`, as in headers."""
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
        """Seconds between two rounds."""
        return max(PERIOD_MIN_MS, min(self.register_name_server_period, PERIOD_MAX_MS)) / 1000

    @property
    def round_timeout_s(self) -> float:
        """Timeout of a round in seconds."""
        usual = BUDGET_5X_MS if self.is_5x else BUDGET_4X_MS
        return (self.register_broker_timeout_mills or usual) / 1000

    @property
    def header_type(self) -> SerializeType:
        return SerializeType[self.serialize_type]

    def checked(self) -> "BrokerConfig":
        """Return the configuration with brokerIP1 filled in. ConfigError for the first invalid value."""
        _converted(msgspec.to_builtins(self), "BrokerConfig")
        return self if self.broker_ip1 else msgspec.structs.replace(self, broker_ip1=local_ip())


def read_config(path: Path, environ: Mapping[str, str] = os.environ) -> BrokerConfig:
    """Return the configuration of a TOML file; name servers and zone default to the environment's.

    Raises ConfigError, whose text names the file, the field and the allowed values."""
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
    """Return the topic. ConfigError for one that a broker cannot have."""
    try:
        converted(msgspec.to_builtins(topic), TopicSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"topic {topic.topic_name!r}: {_message(str(error))}") from error
    return topic


def _converted(values: dict[str, Any], where: str) -> BrokerConfig:
    try:
        config = converted(values, BrokerConfig, str_keys=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_message(str(error))}") from error
    try:
        parse_addresses(config.namesrv_addr)
    except AddressError as error:
        raise ConfigError(f"{where}: namesrvAddr: {error}; expected host:port;host:port") from error
    for field, host in (("brokerIP1", config.broker_ip1), ("brokerIP2", config.broker_ip2)):
        if host:
            _expect_host(f"{where}: {field}", host)
    _refuse_duplicates(f"{where}: topics", [topic.topic_name for topic in config.topics])
    _refuse_duplicates(f"{where}: staticTopics", [topic.topic for topic in config.static_topics])
    return config


def _expect_host(where: str, host: str) -> None:
    try:
        check_address(f"{host}:{PORT_OF_ANY}")
    except AddressError as error:
        raise ConfigError(
            f"{where}: {host!r} is no host; expected a name, an IPv4 address or [IPv6]"
        ) from error


def _refuse_duplicates(where: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        (name, _), *_ = Counter(names).most_common(1)
        raise ConfigError(f"{where}: {name!r} is there twice")


def _message(error: str) -> str:
    """Return `listenPort: expected int <= 65535` for ``Expected `int` <= 65535 - at `$.listenPort` ``."""
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
