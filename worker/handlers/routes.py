"""GET_ROUTEINFO_BY_TOPIC (105)."""

from registry.errors import TopicNotFound
from registry.options.catalogue import Options
from registry.routes import RouteView, StoredRoute, route_of
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import encode_route
from worker.cache.views import AskedView
from worker.dispatch import handles, no_route
from worker.reply import Depends, Reply, Request


@handles(RequestCode.GET_ROUTEINFO_BY_TOPIC)
def get_route_info_of_no_topic(request: Request) -> Reply:
    """TOPIC_NOT_EXIST to a request that names none; only then is there nothing to look up."""
    return no_route(request.get("topic"))


def get_route_info_by_topic(stored: StoredRoute, asked: AskedView, options: Options) -> Reply:
    """Body: TopicRouteData in the dialect asked for; TOPIC_NOT_EXIST for what no living broker has.

    Called by `worker.cache.filling` with the route that it has read; routes read alike have the same reply, in which
    their names are nowhere."""
    view = RouteView.of(options, stored.topic, asked.zone)
    kind = (asked, view)
    reply: Reply | None = stored.replies.get(kind)
    if reply is not None:
        return reply
    depends = Depends(stored.names, listed=stored.listed)
    dialect = Dialect.STANDARD if asked.standard else Dialect.LEGACY
    try:
        body = encode_route(route_of(stored, view), dialect, v5_members=not asked.omits_v5)
    except TopicNotFound:
        missing = no_route(stored.topic)
        return Reply(missing.code, missing.remark, depends=depends)
    reply = stored.replies[kind] = Reply(body=body, depends=depends)
    return reply
