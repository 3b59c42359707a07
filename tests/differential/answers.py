"""Replies as values that do not depend on the order of hash tables: two servers' must be equal."""

import json
import re
from typing import Any

from msgspec import Struct

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.properties import parse_properties
from rocketmq_remoting.tolerant_json import normalise
from tests.differential.world import NAME, World

NOW_MS = 1_600_000_000_000
LISTS = frozenset(
    {
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        RequestCode.GET_TOPICS_BY_CLUSTER,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        RequestCode.GET_UNIT_TOPIC_LIST,
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    }
)


DIALECTS = (RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_MEMBER_GROUP)
"""Replies about this world alone; others also show what other worlds have left."""


class Seen(Struct, frozen=True):
    """A masked reply. `code` is None without one: then `remark` is `closed` or `silent`.

    `standard` is whether the body is JSON by RFC 8259 (None: no such body); `binary` is the header's encoding."""

    code: int | None
    remark: str | None = None
    ext: dict[str, str] = {}
    body: Any = None
    standard: bool | None = None
    binary: bool = False


CLOSED = Seen(None, "closed")
SILENT = Seen(None, "silent")
USABLE = Seen(None, "no answer, and the connection is of use")


def seen(request_code: int, answer: Command, world: World, options: frozenset[str]) -> Seen:
    """Return the reply to a request of that code as a value; of the configuration (319) only these options."""
    text = world.masked(answer.body.decode())
    body: Any = text or None
    standard = None
    if text and request_code == RequestCode.GET_NAMESRV_CONFIG:
        body = {key: value for key, value in parse_properties(text).items() if key in options}
    elif text:
        standard = _is_standard(answer.body) if request_code in DIALECTS else None
        body = _of_this_world(request_code, _parsed(text))
    return Seen(
        answer.code,
        None if answer.remark is None else world.masked(answer.remark),
        {key: world.masked(value) for key, value in (answer.ext or {}).items()},
        body,
        standard,
        bool(answer.serialize_type),
    )


def _is_standard(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def _parsed(text: str) -> Any:
    try:
        return json.loads(normalise(text.encode()))
    except (BodyError, ValueError):
        return f"unreadable: {text}"


def _of_this_world(request_code: int, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    if request_code in LISTS:
        body["topicList"] = [topic for topic in body["topicList"] if str(topic).startswith(NAME)]
    elif request_code == RequestCode.GET_BROKER_CLUSTER_INFO:
        for table in ("brokerAddrTable", "clusterAddrTable"):
            body[table] = {name: one for name, one in body[table].items() if name.startswith(NAME)}
    elif request_code in (RequestCode.GET_KVLIST_BY_NAMESPACE, RequestCode.REGISTER_BROKER):
        body["table"] = {key: value for key, value in body["table"].items() if key.startswith(NAME)}
    return _ordered(body)


def _ordered(value: Any) -> Any:
    """Return a value with sorted lists, and a word for the present time that servers fill in."""
    if isinstance(value, dict):
        present = isinstance(stamp := value.get("timestamp"), int) and stamp > NOW_MS
        return {key: "now" if present and key == "timestamp" else _ordered(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((_ordered(one) for one in value), key=repr_of)
    return value


def repr_of(value: Any) -> str:
    """Return a sort key that does not depend on the order of members."""
    return json.dumps(value, sort_keys=True)


EXCEPTION = re.compile(r"^[A-Za-z0-9_.$]*(Exception|Error)\b", re.MULTILINE)
