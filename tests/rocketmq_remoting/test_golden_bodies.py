"""Bodies of real peers: typed, and written again with the same meaning."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.cluster import (
    decode_broker_member_group,
    decode_cluster_info,
    encode_broker_member_group,
    encode_cluster_info,
)
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import decode_data_version
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.kv_table import decode_kv_table, encode_kv_table
from rocketmq_remoting.properties import format_properties, parse_properties
from rocketmq_remoting.registration import (
    body_crc32,
    decode_register_broker_body,
    encode_register_broker_body,
)
from rocketmq_remoting.route import TopicRouteData, decode_route, encode_route
from rocketmq_remoting.tolerant_json import normalise
from rocketmq_remoting.topic_list import decode_topic_list, encode_topic_list
from rocketmq_remoting.version import V4_9_4, V5_0_0
from tests.rocketmq_remoting.golden import NAMES, recorded, replies, requests


def meaning(body: bytes, *, without: tuple[str, ...] = ()) -> Any:
    """The body parsed, lists that come from hash tables sorted, members of newer releases taken out."""

    def sorted_out(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: sorted_out(member) for name, member in value.items() if name not in without}
        if isinstance(value, list):
            return sorted((sorted_out(element) for element in value), key=repr)
        return value

    return sorted_out(msgspec.json.decode(normalise(body)))


def successes(code: RequestCode) -> list[Command]:
    recorded_replies = [reply for reply in replies(code) if reply.code == ResponseCode.SUCCESS]
    assert recorded_replies, f"no recorded answer to {code!r}"
    return recorded_replies


@pytest.mark.parametrize("name", [name for name in NAMES if "mqadmin" not in name and "pushes" not in name])
def test_a_registration_is_read_and_written_byte_for_byte(name: str) -> None:
    registrations = [
        r.command
        for r in recorded(name)
        if r.request is None and r.command.code == RequestCode.REGISTER_BROKER
    ]
    assert registrations
    for command in registrations:
        body, version = command.body, command.version
        assert command.get("bodyCrc32") == str(body_crc32(body))
        registered = decode_register_broker_body(
            body, version=version, compressed=command.get("compressed") == "true", now_ms=7
        )
        assert registered.topic_keys == registered.topics.keys()
        assert registered.data_version.timestamp > 7
        assert encode_register_broker_body(registered, version=version, compressed=body[0] == 0x78) == body


def test_static_topics_of_a_registration_are_read() -> None:
    mappings = [
        decode_register_broker_body(command.body, version=513, compressed=False, now_ms=0).mapping_infos
        for command in requests(RequestCode.REGISTER_BROKER)
        if b'"currIdMap":{' in command.body
    ]
    assert {"broker-a": {1: 0, 2: 1}, "broker-b": {0: 0, 3: 1}}.items() <= {
        infos["StaticT"].bname: infos["StaticT"].curr_id_map for infos in mappings
    }.items()


def test_a_registration_without_change_keeps_its_signature() -> None:
    """5.5.0 brokers put a new time stamp into each body, so bodies differ where their signatures are the same."""
    first, second, *_ = (
        command
        for command in requests(RequestCode.REGISTER_BROKER)
        if command.version == 513
        and b"mappingDataVersion" in command.body
        and command.get("brokerName") == "broker-b"
    )
    assert first.body != second.body
    assert split_signature(first.body) == split_signature(second.body)


def test_every_plain_registration_has_a_signature_that_leaves_out_only_the_mapping_version() -> None:
    for command in requests(RequestCode.REGISTER_BROKER):
        parts = split_signature(command.body)
        if command.body[0] == 0x78:
            assert parts is None
            continue
        assert parts is not None
        version, before, after = parts
        rest = re.sub(rb'"mappingDataVersion":\{[^}]*\},', b"", command.body)
        assert before + version + b"," + after == rest
        registered = decode_register_broker_body(command.body, version=513, compressed=False, now_ms=0)
        assert decode_data_version(version) == registered.data_version


def test_a_route_is_read_and_written_in_the_dialect_of_its_request() -> None:
    for name in NAMES:
        for reply in recorded(name):
            request = reply.request
            if not request or request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC or reply.command.code:
                continue
            server = reply.command.version
            zone_filtered = (
                request.get("__ZONE_MODE") == "true"
            )  # Java writes these in the legacy dialect again
            standard = min(server, request.version) >= V4_9_4 and not zone_filtered
            dialect = Dialect.STANDARD if standard else Dialect.LEGACY
            written = encode_route(decode_route(reply.command.body), dialect, v5_members=server >= V5_0_0)
            assert written == reply.command.body.replace(b"topicSynFlag", b"topicSysFlag")


def test_both_dialects_of_a_route_mean_the_same() -> None:
    for reply in successes(RequestCode.GET_ROUTEINFO_BY_TOPIC):
        route = decode_route(reply.body)
        assert route.broker_datas or not route.queue_datas
        assert {decode_route(encode_route(route, dialect)) == route for dialect in Dialect} == {True}


def test_the_route_that_enable_single_topic_register_sends_is_read() -> None:
    (command,) = requests(RequestCode.REGISTER_TOPIC_IN_NAMESRV)
    route = decode_route(command.body)
    assert [data.broker_name for data in route.queue_datas] == ["broker-f"]
    assert route == TopicRouteData((), route.queue_datas, {})
    assert encode_route(route, Dialect.LEGACY) == command.body


@pytest.mark.parametrize(
    ("code", "again"),
    [
        pytest.param(
            RequestCode.GET_BROKER_CLUSTER_INFO,
            lambda b: encode_cluster_info(decode_cluster_info(b)),
            id="106",
        ),
        pytest.param(
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            lambda b: encode_topic_list(decode_topic_list(b)),
            id="206",
        ),
        pytest.param(
            RequestCode.GET_BROKER_MEMBER_GROUP,
            lambda b: encode_broker_member_group(decode_broker_member_group(b)),
            id="901",
        ),
        pytest.param(RequestCode.QUERY_DATA_VERSION, lambda b: decode_data_version(b).encode(), id="322"),
    ],
)
def test_an_answer_is_read_and_written(code: RequestCode, again: Callable[[bytes], bytes]) -> None:
    for reply in successes(code):
        if not reply.body:
            continue
        if reply.version >= V5_0_0:
            assert again(reply.body) == reply.body
        else:
            without = ("enableActingMaster", "stateVersion")
            assert meaning(again(reply.body), without=without) == meaning(reply.body)


def test_the_order_table_in_answers_to_registrations_is_read_and_written() -> None:
    bodies = {reply.body for reply in successes(RequestCode.REGISTER_BROKER) if reply.body}
    assert bodies
    for body in bodies:
        assert encode_kv_table(decode_kv_table(body)) == body


def test_a_configuration_is_read_and_listed_again() -> None:
    for reply in successes(RequestCode.GET_NAMESRV_CONFIG):
        entries = parse_properties(reply.body.decode())
        assert entries["listenPort"].isdigit()
        assert format_properties(entries) == reply.body.decode()


def test_what_mqadmin_sets_is_read() -> None:
    sent = [
        parse_properties(command.body.decode()) for command in requests(RequestCode.UPDATE_NAMESRV_CONFIG)
    ]
    assert {"orderMessageEnable": "true"} in sent
