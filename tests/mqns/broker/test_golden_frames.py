"""What captured brokers sent comes out byte for byte, frame for frame, from a configuration alone."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from mqns.broker import requests
from mqns.broker.config import BrokerConfig, StaticTopicSettings, TopicSettings
from mqns.broker.topics import (
    SYNC_BROKER_MEMBER_PREFIX,
    TopicBatch,
    TopicTable,
    full_batch,
    increment_batch,
    initial_table,
    split_batches,
    starting_topics,
)
from mqns.remoting.call import Call
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration import decode_register_broker_body
from rocketmq_remoting.route import decode_route
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from rocketmq_remoting.version import version_name
from tests.rocketmq_remoting.golden import NAMES, Recorded, recorded

OTHERS = (
    RequestCode.UNREGISTER_BROKER,
    RequestCode.QUERY_DATA_VERSION,
    RequestCode.BROKER_HEARTBEAT,
    RequestCode.GET_BROKER_MEMBER_GROUP,
    RequestCode.GET_ROUTEINFO_BY_TOPIC,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV,
)
BROKERS = (
    "broker",
    "master",
    "slave",
    "force",
    "compressed",
    "split",
    "single",
    "zone-5",
    "perm4",
    "container",
)
"""How the names of recorded peers begin that are brokers."""
SPLIT = "broker-e"
READ_ONLY = ("broker-h", "broker-i")
"""Those with brokerPermission=4."""


def captured(*codes: RequestCode) -> Iterator[tuple[str, Recorded]]:
    for name in NAMES:
        for number, line in enumerate(recorded(name), 1):
            if line.request is None and line.command.code in codes and line.peer.startswith(BROKERS):
                yield f"{name}:{number}", line


def configured(command: Command) -> BrokerConfig:
    """The broker that sent it."""
    ext = command.ext or {}
    ip, _, port = ext.get("brokerAddr", "127.0.0.1:10911").rpartition(":")
    ha_ip, _, ha_port = ext.get("haServerAddr", "127.0.0.1:10912").rpartition(":")
    return BrokerConfig(
        broker_name=ext.get("brokerName", ""),
        broker_cluster_name=ext.get("clusterName", "DefaultCluster"),
        broker_id=int(ext.get("brokerId", "0")),
        broker_ip1=ip,
        broker_ip2=ha_ip,
        listen_port=int(port),
        ha_listen_port=int(ha_port),
        zone_name=ext.get("__ZONE_NAME", ""),
        zone_mode=ext.get("__ZONE_MODE") == "true",
        enable_slave_acting_master=ext.get("enableActingMaster") == "true",
        compressed_register=command.body[:1] == b"x",
        default_topic_queue_nums=4,
        version=version_name(command.version).removeprefix("V").replace("_", "."),
        broker_permission=4 if ext.get("brokerName") in READ_ONLY else 6,
    )


def sent(call: Call[Any], like: Command) -> bytes:
    """The frame; opaque and flag are the connection's business."""
    request = call.request
    return encode(
        Command(
            request.code,
            like.opaque,
            like.flag,
            like.version,
            ext=request.ext,
            body=request.body,
            serialize_type=like.serialize_type,
        )
    )


def body_of(command: Command) -> RegisterBrokerBody:
    return decode_register_broker_body(
        command.body, version=command.version, compressed=command.get("compressed") == "true", now_ms=0
    )


def configured_with(
    topics: dict[str, TopicConfig], infos: Iterable[TopicQueueMappingInfo], like: BrokerConfig
) -> BrokerConfig:
    """The broker with those of the topics that are not its own from the start."""
    own = {topic.topic_name for topic in starting_topics(like)}
    return replace(
        like,
        topics=tuple(
            TopicSettings(
                topic_name=topic.topic_name,
                read_queue_nums=topic.read_queue_nums,
                write_queue_nums=topic.write_queue_nums,
                perm=topic.perm,
                topic_sys_flag=topic.topic_sys_flag,
                order=topic.order,
            )
            for topic in topics.values()
            if topic.topic_name not in own
        ),
        static_topics=tuple(
            StaticTopicSettings(
                topic=info.topic,
                total_queues=info.total_queues,
                curr_id_map=info.curr_id_map,
                epoch=info.epoch,
            )
            for info in infos
        ),
    )


def pieces_of(table: TopicTable, config: BrokerConfig, count: int) -> list[TopicBatch]:
    """What such a broker could mean by a registration of so many topics."""
    if count == 1:
        return [increment_batch(table, config, [name]) for name in table.topics]
    return [full_batch(table, config)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=where)
        for where, line in captured(RequestCode.REGISTER_BROKER)
        if line.command.get("brokerName") != SPLIT
    ],
)
def test_a_registration(line: Recorded) -> None:
    command, body = line.command, body_of(line.command)
    config = configured_with(body.topics, body.mapping_infos.values(), configured(command))
    pieces = pieces_of(initial_table(config, None, 0), config, len(body.topics))
    assert line.frame in [registered(config, piece, command, body) for piece in pieces]


def test_split_registrations() -> None:
    """Two rounds of 15 and 16 topics, and between them an increment."""
    lines = [
        line for _, line in captured(RequestCode.REGISTER_BROKER) if line.command.get("brokerName") == SPLIT
    ]
    before = replace(configured(lines[0].command), split_registration_size=5)
    after = replace(
        before, topics=(TopicSettings(topic_name="TopicTest", read_queue_nums=4, write_queue_nums=4),)
    )
    table = initial_table(after, None, 0)
    first = split_batches(initial_table(before, None, 0), before)
    pieces = [*first, increment_batch(table, after, ["TopicTest"]), *split_batches(table, after)]
    assert len(lines) == len(pieces) == 9
    for line, piece in zip(lines, pieces, strict=True):
        assert registered(after, piece, line.command, body_of(line.command)) == line.frame


def registered(config: BrokerConfig, piece: TopicBatch, like: Command, body: RegisterBrokerBody) -> bytes:
    mapping_version = body.mapping_data_version
    made_ms = mapping_version.timestamp if mapping_version else 0
    return sent(requests.registration(config, piece, body.data_version, made_ms), like)


@pytest.mark.parametrize("line", [pytest.param(line, id=where) for where, line in captured(*OTHERS)])
def test_another_request(line: Recorded) -> None:
    assert sent(made(line.command), line.command) == line.frame


def made(command: Command) -> Call[Any]:
    config = configured(command)
    match command.code:
        case RequestCode.UNREGISTER_BROKER:
            return requests.unregistration(config)
        case RequestCode.QUERY_DATA_VERSION:
            return requests.version_query(config, decode_data_version(command.body))
        case RequestCode.BROKER_HEARTBEAT:
            return requests.heartbeat(replace(config, compatible_with_old_name_srv=False), DataVersion())
        case RequestCode.GET_BROKER_MEMBER_GROUP:
            return requests.member_group(replace(config, compatible_with_old_name_srv=False))
        case RequestCode.GET_ROUTEINFO_BY_TOPIC:
            name = command.get("topic") or ""
            return requests.member_group(
                replace(config, broker_name=name.removeprefix(SYNC_BROKER_MEMBER_PREFIX))
            )
        case RequestCode.GET_BROKER_CLUSTER_INFO:
            return requests.cluster_info(config)
        case _:
            (queues,) = decode_route(command.body).queue_datas
            topic = TopicConfig(
                command.get("topic") or "", queues.read_queue_nums, queues.write_queue_nums, queues.perm
            )
            return requests.single_topic(replace(config, broker_name=queues.broker_name), topic)
