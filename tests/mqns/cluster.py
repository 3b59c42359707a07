"""A name server and brokers in memory, for a client on a virtual clock."""

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.heartbeat import HeartbeatData, decode_heartbeat
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import TopicRouteData, encode_route
from testbed.network import Network, Peer
from testbed.virtual_time import START_S

NS = "127.0.0.1:9876"
V4_9_7, V5_5_0 = 407, 513
KNOWS = {"IS_SUPPORT_HEART_BEAT_V2": "true"}


class Cluster:
    """`routes` is what the name server answers; it may be changed at any time."""

    def __init__(self, **routes: TopicRouteData) -> None:
        self.network = Network()
        self.routes = routes
        self.ns = self.network.serve(NS, self._route)

    def brokers(self, *addresses: str) -> list[Peer]:
        """Brokers of 4.9.7 there."""
        return [self.network.serve(address, broker_4) for address in addresses]

    @property
    def lookups(self) -> list[tuple[float, str]]:
        """(seconds since the beginning, topic) of each question to the name server."""
        return [(round(f.at - START_S, 3), f.command.get("topic") or "") for f in self.ns.frames]

    def _route(self, request: Command) -> Command:
        assert request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
        route = self.routes.get(request.get("topic") or "")
        if route is None:
            return request.reply(ResponseCode.TOPIC_NOT_EXIST, remark="no such topic")
        return request.reply(0, body=encode_route(route, Dialect.STANDARD))


def broker_4(request: Command) -> Command:
    """Answers as 4.9.7 does."""
    ext: dict[str, str] | None = {} if request.code == RequestCode.UNREGISTER_CLIENT else None
    return Command(0, request.opaque, 1, V4_9_7, ext=ext)


def broker_5(request: Command, *, wants_full_form: bool = False) -> Command:
    """Answers as 5.5.0 does, which always says that it wants the full form after a heartbeat without fingerprint."""
    if request.code == RequestCode.UNREGISTER_CLIENT:
        return Command(0, request.opaque, 1, V5_5_0, ext={})
    wants = wants_full_form or not decode_heartbeat(request.body).heartbeat_fingerprint
    return Command(0, request.opaque, 1, V5_5_0, ext=KNOWS | {"IS_SUB_CHANGE": str(wants).lower()})


def heartbeats_of(peer: Peer) -> list[tuple[float, HeartbeatData]]:
    """(seconds since the beginning, what it said) of each heartbeat that a broker got."""
    return [
        (round(frame.at - START_S, 3), decode_heartbeat(frame.command.body))
        for frame in peer.frames
        if frame.command.code == RequestCode.HEART_BEAT
    ]


def heartbeat_times(peer: Peer) -> list[float]:
    """When a broker got heartbeats."""
    return [at for at, _ in heartbeats_of(peer)]
