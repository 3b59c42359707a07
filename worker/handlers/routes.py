"""GET_ROUTEINFO_BY_TOPIC (105)."""

from registry.errors import TopicNotFound
from registry.plans import Plan
from registry.routes import RouteView, body_of, read_route
from remoting.codes import RequestCode
from remoting.json_out import Dialect
from worker.answer import Answer, Depends, Handled, Request
from worker.dispatch import handles, no_route
from worker.route_view import AskedView, asked_view


@handles(RequestCode.GET_ROUTEINFO_BY_TOPIC)
def get_route_info_by_topic(request: Request) -> Handled:
    """Body: TopicRouteData in the dialect asked for; TOPIC_NOT_EXIST for what no living broker has."""
    topic = request.get("topic")
    if topic is None:
        return no_route(topic)
    return _route(request, topic, asked_view(request.command, request.options))


def _route(request: Request, topic: str, asked: AskedView) -> Plan[Answer]:
    options = request.options
    stored = yield from read_route(request.keys, topic)
    view = RouteView(
        zone=asked.zone,
        acting_master=options.support_acting_master,
        order=options.order_message_enable or options.cluster_test,
    )
    depends = Depends(topic, stored.names, listed=stored.listed)
    dialect = Dialect.STANDARD if asked.standard else Dialect.LEGACY
    try:
        return Answer(body=body_of(stored, view, dialect, v5_members=not asked.omits_v5), depends=depends)
    except TopicNotFound:
        missing = no_route(topic)
        return Answer(missing.code, missing.remark, depends=depends)
