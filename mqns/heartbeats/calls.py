"""Calls of a client to a broker: heartbeat and unregistration."""

from msgspec import Struct

from mqns.remoting.call import Call
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command


class HeartbeatReply(Struct, frozen=True):
    """A broker's response to a heartbeat: its version, whether it supports short heartbeats (5.x), and whether its
    subscriptions differ, so that it needs a full heartbeat."""

    version: int
    supports_short: bool
    needs_full: bool


def heartbeat(body: bytes) -> Call[HeartbeatReply]:
    """Send a heartbeat (34); `body` is of rocketmq_remoting.heartbeat."""
    return Call(Request(RequestCode.HEART_BEAT, body=body), _heartbeat_reply)


def unregister_client(
    client_id: str, *, producer_group: str | None = None, consumer_group: str | None = None
) -> Call[None]:
    """Unregister a group of a client at a broker (35)."""
    ext = {"producerGroup": producer_group, "clientID": client_id, "consumerGroup": consumer_group}
    fields = {name: text for name, text in ext.items() if text is not None}
    return Call(Request(RequestCode.UNREGISTER_CLIENT, fields), lambda _: None)


def _heartbeat_reply(response: Command) -> HeartbeatReply:
    return HeartbeatReply(
        response.version, _is_true(response, "IS_SUPPORT_HEART_BEAT_V2"), _is_true(response, "IS_SUB_CHANGE")
    )


def _is_true(response: Command, name: str) -> bool:
    """Return a field as Java's Boolean.parseBoolean does."""
    return (response.get(name) or "").lower() == "true"
