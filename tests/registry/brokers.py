"""Registrations as brokers send them, in few words."""

from collections.abc import Iterable, Mapping
from itertools import count
from zlib import crc32

from registry.plans import Origin
from registry.registration.register import Registration
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo

V5 = 479
V4 = 373
PLAIN = "8,8,6,0"
Topics = Iterable[str] | Mapping[str, str]

_ops = count(1)


def origin() -> Origin:
    """A request of its own."""
    return Origin(op=f"op-{next(_ops):x}", actor="wire:127.0.0.1:4711")


def address(name: str, number: int = 0) -> str:
    """Where member `number` of a broker listens, unless a test says otherwise."""
    crc = crc32(name.encode())
    return f"127.{1 + crc % 250}.{(crc >> 8) % 256}.{number + 1}:10911"


def topic_configs(topics: Topics) -> dict[str, TopicConfig]:
    """Names, or queue data `readQ,writeQ,perm,sysFlag` by name."""
    texts = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, PLAIN)
    return {topic: _topic_config(topic, text) for topic, text in texts.items()}


def _topic_config(topic: str, text: str) -> TopicConfig:
    read, write, perm, flag = (int(part) for part in text.split(","))
    return TopicConfig(topic, read, write, perm, flag)


def mapping_info(topic: str, name: str = "b1", epoch: int = 1) -> TopicQueueMappingInfo:
    """One queue of static topic `topic` on broker `name`."""
    return TopicQueueMappingInfo(topic, name, 1, {0: 0}, epoch=epoch)


def registration(
    name: str = "b1",
    number: int = 0,
    topics: Topics = ("T1", "T2"),
    *,
    cluster: str = "c1",
    at: str | None = None,
    version: int = 1,
    state: int = 0,
    ha: str | None = None,
    zone: str | None = None,
    acting: bool | None = None,
    filters: tuple[str, ...] | None = (),
    mappings: Iterable[TopicQueueMappingInfo] = (),
    stamp: int = 0,
    timeout_ms: int = 120_000,
    header: int = V5,
    compressed: bool = False,
    without: bytes = b"",
    cut: int = 0,
) -> Registration:
    """`version` is the counter of the data version and `state` its stateVersion; `stamp` that of mappingDataVersion.

    The body is sent without the first `without` in it, and without its last `cut` bytes."""
    configs = topic_configs(topics)
    body = RegisterBrokerBody(
        DataVersion(state, 1_700_000_000_000, version),
        configs,
        frozenset(configs),
        filters,
        {info.topic: info for info in mappings},
        DataVersion(timestamp=stamp),
    )
    sent = encode_register_broker_body(body, version=header, compressed=compressed).replace(without, b"", 1)
    return Registration(
        cluster=cluster,
        name=name,
        address=at or address(name, number),
        id=number,
        ha=ha,
        zone=zone,
        acting=acting,
        timeout_ms=timeout_ms,
        version=header,
        compressed=compressed,
        body=sent[: len(sent) - cut],
    )
