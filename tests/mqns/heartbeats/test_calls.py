"""Requests to brokers, byte for byte as Java's."""

from collections.abc import Iterable

import pytest

from mqns.errors import ResponseError
from mqns.heartbeats.calls import HeartbeatReply, heartbeat, unregister_client
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from tests.mqns.cluster import V4_9_7, V5_5_0
from tests.rocketmq_remoting.golden import TO_BROKERS, Recorded, recorded


def of_code(code: int) -> Iterable[Recorded]:
    return (
        r
        for name in TO_BROKERS
        for r in recorded(name)
        if r.command.code == code and not r.command.is_response
    )


def frame(request: Request, like: Command) -> bytes:
    """The request as the sender of another one would have sent it."""
    return encode(
        Command(
            request.code,
            like.opaque,
            version=like.version,
            language=like.language,
            ext=request.ext,
            body=request.body,
            serialize_type=like.serialize_type,
        )
    )


def test_leaving_is_what_java_clients_send() -> None:
    checked = set()
    for r in of_code(RequestCode.UNREGISTER_CLIENT):
        ext = r.command.ext or {}
        if "ReqT" in ext:  # Java's client for pull consumers adds it
            continue
        group = "producerGroup" if "producerGroup" in ext else "consumerGroup"
        call = unregister_client(
            ext["clientID"],
            producer_group=ext.get("producerGroup"),
            consumer_group=ext.get("consumerGroup"),
        )
        assert frame(call.request, r.command) == r.frame
        checked.add((r.type, group, r.command.version))
    assert {(kind, group) for kind, group, _ in checked} >= {
        ("JSON", "producerGroup"),
        ("JSON", "consumerGroup"),
    }
    assert {version for _, _, version in checked} == {V4_9_7, V5_5_0}


def test_a_heartbeat_is_what_java_clients_send() -> None:
    checked = 0
    for r in of_code(RequestCode.HEART_BEAT):
        if r.command.ext is None:  # 5.x sends an empty object there in JSON
            assert frame(heartbeat(r.command.body).request, r.command) == r.frame
            checked += 1
    assert checked


def test_answers_to_heartbeats_are_read() -> None:
    answers = {
        heartbeat(b"").result("b:1", r.command)
        for name in TO_BROKERS
        for r in recorded(name)
        if r.request and r.request.code == RequestCode.HEART_BEAT and r.command.is_response
    }
    assert answers == {
        HeartbeatReply(V4_9_7, supports_short=False, needs_full=False),
        HeartbeatReply(V5_5_0, supports_short=True, needs_full=True),
        HeartbeatReply(V5_5_0, supports_short=True, needs_full=False),
    }


def test_another_code_is_an_error() -> None:
    with pytest.raises(ResponseError, match="b:1 answered code 2: busy"):
        heartbeat(b"").result("b:1", Command(2, 1, 1, V4_9_7, remark="busy"))
