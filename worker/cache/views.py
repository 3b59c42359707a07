"""Which of a topic's possible replies a route request asks for, what that reply is cached under, and what it costs."""

from typing import Final, NamedTuple

from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.remoting_command import Command
from rocketmq_remoting.version import V4_9_4, V5_0_0
from worker.reply import Reply

COST: Final = 1500
"""Bytes of an entry of the route cache and its place in the index, measured."""

# As plain integers, which compare in a third of the time of an enum's.
GET_ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
GET_CLUSTER_INFO: Final = int(RequestCode.GET_BROKER_CLUSTER_INFO)


class AskedView(NamedTuple):
    """The view that a request asks for.

    `standard` is JSON instead of the legacy dialect; `omits_v5` leaves 5.x members out; `zone` is lower case."""

    standard: bool
    omits_v5: bool
    zone: str | None


PLAIN_LEGACY = AskedView(False, False, None)
PLAIN_STANDARD = AskedView(True, False, None)


def asked_view(command: Command, options: Options) -> AskedView:
    """Return the view by version and ext fields (RocketMQ ClientRequestProcessor, ZoneRouteRPCHook)."""
    version, ext = command.version, command.ext
    zone = None
    standard = version >= V4_9_4
    if ext is not None and len(ext) > 1:
        standard = standard or ext.get("acceptStandardJsonOnly", "").lower() == "true"
        name = ext.get("__ZONE_NAME", "").lower()
        if name.strip() and ext.get("__ZONE_MODE", "").lower() == "true":
            zone = name
    if zone is None and not options.omit_v5_members:
        return PLAIN_STANDARD if standard else PLAIN_LEGACY
    return AskedView(standard, options.omit_v5_members and version < V5_0_0, zone)


Key = tuple[str, AskedView | None]
"""What a reply is cached under: a topic and which of its views, or CLUSTER_INFO."""

CLUSTER_INFO: Key = ("", None)


def cache_key(command: Command, options: Options) -> Key | None:
    """Return what the reply to this request is cached under, or None for all that is not cached."""
    if command.code == GET_ROUTE:
        topic = command.get("topic")
        return None if topic is None else (topic, asked_view(command, options))
    return CLUSTER_INFO if command.code == GET_CLUSTER_INFO else None


def cost_of(key: Key, reply: Reply) -> int:
    """Return about how many bytes a cached reply takes."""
    brokers = 0 if reply.depends is None else len(reply.depends.brokers)
    topic, view = key
    zone = 0 if view is None or view.zone is None else len(view.zone)
    return COST + len(reply.body) + 4 * (len(topic) + zone) + 100 * brokers
