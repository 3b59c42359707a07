"""Routes of topics, as clients get them (105), in standard JSON."""

from apiflask import APIBlueprint
from flask import Response

from api.clusters import BrokerDataAnswer
from api.name_server import name_server
from api.problems import Problem
from api.shapes import Answer, Name, Query, QueueDataAnswer
from registry.members import lease_clock
from registry.routes import RouteView, must_wait, read_route, route_of
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import encode_route

bp = APIBlueprint("routes", __name__, url_prefix="/v1/routes")


class ZoneQuery(Query):
    """`zone` leaves out brokers with a master in other zones."""

    zone: Name | None = None


class MappingAnswer(Answer):
    """The queues of a static topic on one broker; `currIdMap` maps the topic's queues to the broker's."""

    bname: str
    curr_id_map: dict[int, int]
    dirty: bool
    epoch: int
    scope: str
    topic: str
    total_queues: int


class RouteBroker(BrokerDataAnswer):
    """As clusters show it, but without a zone that is null."""

    zone_name: str | None = None


class Route(Answer):
    """TopicRouteData; members that are null are left out."""

    broker_datas: tuple[RouteBroker, ...]
    queue_datas: tuple[QueueDataAnswer, ...]
    filter_server_table: dict[str, tuple[str, ...]]
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, MappingAnswer] | None = None


@bp.get("/<topic>")
@bp.input(ZoneQuery, location="query")
@bp.output(Route)
@bp.doc(
    operation_id="getRoute",
    responses={404: "No living broker has the topic", 503: "The store is away, or the service just started"},
)
def route(topic: str, query_data: ZoneQuery) -> Response:
    """The brokers of a topic"""
    server = name_server()
    options = server.options()
    if must_wait(options, lambda: server.run(lease_clock(server.keys)).service_age_s):
        raise Problem(
            503, "service-starting", "the service waits for brokers to register (needWaitForService)"
        )
    view = RouteView.of(options, topic, query_data.zone)
    body = encode_route(route_of(server.run(read_route(server.keys, topic)), view), Dialect.STANDARD)
    return Response(body + b"\n", mimetype="application/json")
