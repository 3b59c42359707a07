"""Frames as 5.5.0 brokers and clients send them, and the bench's closed loops of them."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from rocketmq_remoting.acl_signature import ACCESS_KEY, SIGNATURE, signature
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType, decode, encode
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, body_crc32, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT

CLUSTER = "bench"
QUEUES = 8
ALIKE = 10  # of thousands of brokers so many have the same topics
BORN_MS = 1_700_000_000_000  # of data versions


class Workload(msgspec.Struct, frozen=True):
    """A closed loop and its goals: times Java's rate, and times that of a server of canned bytes.

    `connections` keep `depth` requests each without a reply; `frames` go round."""

    name: str
    goal: float
    connections: int
    frames: Callable[[], Iterable[bytes]]
    depth: int = 1
    canned_goal: float | None = None


class Scene(msgspec.Struct, frozen=True):
    """Loads that meet the same brokers on the same servers. `prepare` frames must succeed before anything else."""

    prepare: Callable[[], Iterable[bytes]]
    workloads: tuple[Workload, ...]


def request(code: int, ext: dict[str, str], body: bytes = b"") -> bytes:
    """Return a frame as a 5.5.0 peer with binary headers sends it."""
    command = Command(
        code=code, opaque=1, version=CURRENT, ext=ext, body=body, serialize_type=SerializeType.ROCKETMQ
    )
    return encode(command)


def signed_by(access_key: str, secret: str, frames: Iterable[bytes]) -> Iterator[bytes]:
    """Yield these requests as a peer with this key sends them."""
    for command in (decode(frame[4:]) for frame in frames):
        fields = {**(command.ext or {}), ACCESS_KEY: access_key}
        fields[SIGNATURE] = signature(fields, command.body, secret)
        yield encode(replace(command, ext=fields))


def address(broker: int) -> str:
    return f"127.{20 + broker // 62_500}.{broker // 250 % 250}.{1 + broker % 250}:10911"


def identity(broker: int, cluster: str = CLUSTER) -> dict[str, str]:
    return {
        "brokerName": f"broker-{broker:03d}",
        "brokerAddr": address(broker),
        "clusterName": cluster,
        "brokerId": "0",
    }


def topic_names(count: int, prefix: str = "bench_topic") -> Iterator[str]:
    return (f"{prefix}_{i:06d}" for i in range(count))


def topic_table(count: int, prefix: str = "bench_topic") -> dict[str, TopicConfig]:
    return {name: TopicConfig(name, QUEUES, QUEUES) for name in topic_names(count, prefix)}


def registration(
    broker: int,
    topics: dict[str, TopicConfig],
    *,
    counter: int = 1,
    stamp: int = 0,
    cluster: str = CLUSTER,
) -> bytes:
    """Return a registration as 5.x sends it: `counter` moves the data version, `stamp` mappingDataVersion."""
    body = RegisterBrokerBody(
        DataVersion(0, BORN_MS, counter),
        topics,
        mapping_data_version=DataVersion(0, BORN_MS + stamp, 0),
    )
    raw = encode_register_broker_body(body, version=CURRENT, compressed=False)
    ext = identity(broker, cluster) | {
        "haServerAddr": address(broker).replace("10911", "10912"),
        "enableActingMaster": "false",
        "compressed": "false",
        "bodyCrc32": str(body_crc32(raw)),
    }
    return request(RequestCode.REGISTER_BROKER, ext, raw)


def clustered(brokers: Sequence[int], topics: int, prefix: str, *, in_a_cluster: int = 10) -> Iterator[bytes]:
    """Yield the registrations of these brokers: so many make a cluster, `<prefix>-<number>`, with topics of its own."""
    for first in range(0, len(brokers), in_a_cluster):
        cluster = f"{prefix}-{first // in_a_cluster:02d}"
        table = topic_table(topics, cluster)
        for broker in brokers[first : first + in_a_cluster]:
            yield registration(broker, table, cluster=cluster)


def tables(brokers: int, topics: int, alike: int | None) -> list[dict[str, TopicConfig]]:
    """Return the table of each broker: so many one after another have the same topics, else all."""
    if alike is None:
        return [topic_table(topics)] * brokers
    return [topic_table(topics, f"bench_{broker // alike}_topic") for broker in range(brokers)]


def registered(brokers: int, topics: int, alike: int | None = None) -> Callable[[], Iterator[bytes]]:
    """Yield the registrations of brokers of which so many have the same `topics` topics, else all."""
    return lambda: (
        registration(broker, table) for broker, table in enumerate(tables(brokers, topics, alike))
    )


def lookup(topic: str) -> bytes:
    return request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})


def lookups(topics: int) -> list[bytes]:
    return [lookup(name) for name in topic_names(topics)]


def unchanged(brokers: int, topics: int, rounds: int, alike: int | None = None) -> Iterator[bytes]:
    """Each broker registers what it has registered, mappingDataVersion new each time."""
    of_each = tables(brokers, topics, alike)
    return (
        registration(broker, of_each[broker], stamp=stamp)
        for stamp, broker in itertools.product(range(1, rounds + 1), range(brokers))
    )


def new_versions(brokers: int, topics: int, rounds: int) -> Iterator[bytes]:
    """Each broker registers the same topics under a data version that is not the one before."""
    table = topic_table(topics)
    return (
        registration(broker, table, counter=2 + turn, stamp=turn)
        for turn, broker in itertools.product(range(rounds), range(brokers))
    )


def changed_topics(rounds: int) -> Iterator[TopicConfig]:
    """Yield one topic after the other, other than the time before: its queues grow or shrink by one.

    `rounds` topics grow, then shrink again in the same order; so the last is followed by the first."""
    for turn in range(2 * rounds):
        queues = QUEUES + 1 if turn < rounds else QUEUES
        yield TopicConfig(f"bench_topic_{turn % rounds:06d}", queues, queues)


def topic_changes(brokers: int, topics: int, rounds: int) -> Iterator[bytes]:
    """Each broker registers all its topics, one of them changed."""
    table = topic_table(topics)
    for turn, topic in enumerate(changed_topics(rounds)):
        table = table | {topic.topic_name: topic}
        for broker in range(brokers):
            yield registration(broker, table, counter=2 + turn, stamp=turn)


def increments(brokers: int, rounds: int) -> Iterator[bytes]:
    """Each broker registers the changed topic alone, as those of 5.x do when one is made or altered."""
    for turn, topic in enumerate(changed_topics(rounds)):
        for broker in range(brokers):
            yield registration(broker, {topic.topic_name: topic}, counter=2 + turn, stamp=turn)


def heartbeats(brokers: int) -> Iterator[bytes]:
    return (request(RequestCode.BROKER_HEARTBEAT, identity(broker)) for broker in range(brokers))


def data_version_queries(brokers: int) -> Iterator[bytes]:
    """Yield the request 322 of each broker: whether this version of its data is registered."""
    body = DataVersion(0, BORN_MS, 1).encode()
    return (request(RequestCode.QUERY_DATA_VERSION, identity(broker), body) for broker in range(brokers))


def cluster_info() -> list[bytes]:
    return [request(RequestCode.GET_BROKER_CLUSTER_INFO, {})]


def heartbeat_loads(brokers: int, remark: str) -> tuple[Workload, Workload]:
    """Return the loads of 322 and 904 of so many brokers, over 200 connections."""
    return (
        Workload(
            f"data-version query (322), {brokers:,} brokers{remark}",
            1.7,
            200,
            lambda: data_version_queries(brokers),
        ),
        Workload(
            f"broker heartbeat (904), {brokers:,} brokers{remark}", 1.7, 200, lambda: heartbeats(brokers)
        ),
    )


def scenes() -> list[Scene]:
    """Return the closed loops of RESULTS.md, in its order.

    A lease that was renewed a moment ago is not written again. Brokers send heartbeats every 30 s, so beside those of a
    few brokers, which come far too often, there are those of so many that practically each is written; ten of these
    have the same topics, as brokers of one cluster.

    A load of topics registered alone has brokers that no other load before it has met: with that one's connections
    Java's server drops its brokers, and refuses a first registration with one topic."""
    many = ", each heartbeat written"
    return [
        Scene(
            registered(4, 10),
            (
                Workload("lookups, 4-broker routes, depth 1", 2.5, 200, lambda: lookups(10), canned_goal=0.7),
                Workload("lookups, 4-broker routes, depth 16", 8, 200, lambda: lookups(10), depth=16),
            ),
        ),
        Scene(
            registered(64, 10), (Workload("lookups, 64-broker routes, depth 1", 6, 200, lambda: lookups(10)),)
        ),
        Scene(registered(300, 2), (Workload("cluster info, 300 brokers", 6, 200, cluster_info),)),
        Scene(
            registered(200, 10),
            (
                *heartbeat_loads(200, ""),
                Workload(
                    "unchanged registration, 10 topics, 200 brokers",
                    1.8,
                    200,
                    lambda: unchanged(200, 10, 10),
                ),
                Workload("one topic of 10 changed", 0.9, 200, lambda: topic_changes(200, 10, 5)),
            ),
        ),
        Scene(
            registered(200, 10),
            (Workload("one topic of 10 registered alone", 0.5, 200, lambda: increments(200, 5)),),
        ),
        Scene(registered(20_000, 2, ALIKE), heartbeat_loads(20_000, many)),
        Scene(
            registered(5_000, 10, ALIKE),
            (
                Workload(
                    f"unchanged registration, 10 topics, 5,000 brokers{many}",
                    1.8,
                    50,
                    lambda: unchanged(5_000, 10, 2, ALIKE),
                ),
            ),
        ),
        Scene(
            registered(20, 1_000),
            (
                Workload("unchanged registration, 1,000 topics", 6, 20, lambda: unchanged(20, 1_000, 10)),
                Workload("one topic of 1,000 changed", 0.9, 20, lambda: topic_changes(20, 1_000, 5)),
            ),
        ),
        Scene(
            registered(8, 1_000),
            (Workload("one topic of 1,000 registered alone", 0.35, 8, lambda: increments(8, 500)),),
        ),
        Scene(
            registered(8, 10_000),
            (
                Workload("unchanged registration, 10,000 topics", 6, 8, lambda: unchanged(8, 10_000, 3)),
                Workload("new data version, same 10,000 topics", 4, 8, lambda: new_versions(8, 10_000, 3)),
                Workload("one topic of 10,000 changed", 0.9, 8, lambda: topic_changes(8, 10_000, 2)),
            ),
        ),
    ]
