"""What a client tells a broker about itself, as Calls."""

from msgspec import Struct

from client.wire.call import Call
from client.wire.request import Request
from remoting.codes import RequestCode
from remoting.command import Command


class Heard(Struct, frozen=True):
    """A broker's answer to a heartbeat: its version, whether short forms mean anything to it (5.x), and whether it
    has another idea of the group's subscriptions and wants them in full."""

    version: int
    knows_short_forms: bool
    wants_full_form: bool


def heartbeat(body: bytes) -> Call[Heard]:
    """Tell a broker which groups there are (34); `body` is of remoting.heartbeat."""
    return Call(Request(RequestCode.HEART_BEAT, body=body), _heard)


def unregister_client(
    client_id: str, *, producer_group: str | None = None, consumer_group: str | None = None
) -> Call[None]:
    """Tell a broker that a group of a client goes (35)."""
    ext = {"producerGroup": producer_group, "clientID": client_id, "consumerGroup": consumer_group}
    given = {name: text for name, text in ext.items() if text is not None}
    return Call(Request(RequestCode.UNREGISTER_CLIENT, given), lambda _: None)


def _heard(answer: Command) -> Heard:
    return Heard(
        answer.version, _is_true(answer, "IS_SUPPORT_HEART_BEAT_V2"), _is_true(answer, "IS_SUB_CHANGE")
    )


def _is_true(answer: Command, name: str) -> bool:
    """As Java's Boolean.parseBoolean."""
    return (answer.get(name) or "").lower() == "true"
