"""What the bench asks: the brokers to register first, and the frames that the load generator sends."""

import itertools
from collections.abc import Iterator

import msgspec

from remoting.codes import RequestCode
from remoting.command import Command, SerializeType, encode
from remoting.data_version import DataVersion
from remoting.registration import RegisterBrokerBody, body_crc32, encode_register_broker_body
from remoting.topic_config import TopicConfig
from remoting.version import CURRENT

CLUSTER = "bench"


class Workload(msgspec.Struct, frozen=True):
    """One row of the results. `prepare` frames are sent once and must succeed; `frames` go round."""

    name: str
    depth: int
    connections: int
    prepare: tuple[bytes, ...]
    frames: tuple[bytes, ...]


def request(code: int, ext: dict[str, str], body: bytes = b"") -> bytes:
    """A frame as a 5.5.0 peer with binary headers sends it."""
    command = Command(
        code=code, opaque=1, version=CURRENT, ext=ext, body=body, serialize_type=SerializeType.ROCKETMQ
    )
    return encode(command)


def address(broker: int) -> str:
    return f"127.{20 + broker // 200}.{broker % 200}.1:10911"


def identity(broker: int) -> dict[str, str]:
    return {
        "brokerName": f"broker-{broker:03d}",
        "brokerAddr": address(broker),
        "clusterName": CLUSTER,
        "brokerId": "0",
    }


def registration(broker: int, topics: int, *, stamp: int = 0) -> bytes:
    """A registration as 5.x sends it: `stamp` moves mappingDataVersion, as it does at each round."""
    body = RegisterBrokerBody(
        DataVersion(0, 1_700_000_000_000, 1),
        {name: TopicConfig(name, 8, 8) for name in topic_names(topics)},
        mapping_data_version=DataVersion(0, 1_700_000_000_000 + stamp, 0),
    )
    raw = encode_register_broker_body(body, version=CURRENT, compressed=False)
    ext = identity(broker) | {
        "haServerAddr": address(broker).replace("10911", "10912"),
        "enableActingMaster": "false",
        "compressed": "false",
        "bodyCrc32": str(body_crc32(raw)),
    }
    return request(RequestCode.REGISTER_BROKER, ext, raw)


def topic_names(count: int) -> Iterator[str]:
    return (f"bench_topic_{i:06d}" for i in range(max(count, 2)))


def lookups(brokers: int, depth: int) -> Workload:
    prepare = tuple(registration(broker, 10) for broker in range(brokers))
    frames = tuple(request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name}) for name in topic_names(10))
    return Workload(f"lookups, {brokers}-broker routes, depth {depth}", depth, 200, prepare, frames)


def cluster_info(brokers: int) -> Workload:
    prepare = tuple(registration(broker, 2) for broker in range(brokers))
    frames = (request(RequestCode.GET_BROKER_CLUSTER_INFO, {}),)
    return Workload(f"cluster info, {brokers} brokers", 1, 200, prepare, frames)


def unchanged_registrations(topics: int) -> Workload:
    brokers, rounds = (50, 40) if topics <= 100 else (20, 10) if topics <= 1000 else (8, 3)
    prepare = tuple(registration(broker, topics) for broker in range(brokers))
    frames = tuple(
        registration(broker, topics, stamp=stamp)
        for stamp, broker in itertools.product(range(1, rounds + 1), range(brokers))
    )
    return Workload(f"unchanged registration, {topics} topics", 1, brokers, prepare, frames)


def heartbeats() -> Workload:
    prepare = tuple(registration(broker, 10) for broker in range(200))
    frames = tuple(request(RequestCode.BROKER_HEARTBEAT, identity(broker)) for broker in range(200))
    return Workload("broker heartbeat (904)", 1, 200, prepare, frames)


def data_version_queries() -> Workload:
    prepare = tuple(registration(broker, 10) for broker in range(200))
    body = DataVersion(0, 1_700_000_000_000, 1).encode()
    frames = tuple(request(RequestCode.QUERY_DATA_VERSION, identity(broker), body) for broker in range(200))
    return Workload("data-version query (322)", 1, 200, prepare, frames)


def all_workloads() -> list[Workload]:
    """The rows of RESULTS.md, in its order."""
    return [
        lookups(4, 1),
        lookups(4, 16),
        lookups(64, 1),
        cluster_info(300),
        unchanged_registrations(10),
        unchanged_registrations(1000),
        unchanged_registrations(10_000),
        data_version_queries(),
        heartbeats(),
    ]
