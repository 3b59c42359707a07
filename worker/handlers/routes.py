"""GET_ROUTEINFO_BY_TOPIC (105)."""

from registry.errors import TopicNotFound
from registry.options import Options
from registry.routes import SYNC_MEMBER_TOPIC, RouteView, StoredRoute, body_of
from remoting.codes import RequestCode
from remoting.json_out import Dialect
from worker.answer import Answer, Depends, Request
from worker.dispatch import handles, no_route
from worker.route_view import AskedView


@handles(RequestCode.GET_ROUTEINFO_BY_TOPIC)
def get_route_info_by_topic(request: Request) -> Answer:
    """Of no topic. A topic's answer is kept, so `Service` asks the store for it and has `route_answer` make it."""
    return no_route(None)


def route_answer(stored: StoredRoute, asked: AskedView, options: Options) -> Answer:
    """Body: TopicRouteData in the dialect asked for; TOPIC_NOT_EXIST for what no living broker has.

    Routes that were read alike have the same answer."""
    acting = options.support_acting_master and not stored.topic.startswith(SYNC_MEMBER_TOPIC)
    order = options.order_message_enable or options.cluster_test
    kind = (asked, acting, order)
    answer: Answer | None = stored.made.get(kind)
    if answer is not None:
        return answer
    view = RouteView(zone=asked.zone, acting_master=acting, order=order)
    depends = Depends(stored.names, listed=stored.listed)
    dialect = Dialect.STANDARD if asked.standard else Dialect.LEGACY
    try:
        body = body_of(stored, view, dialect, v5_members=not asked.omits_v5)
    except TopicNotFound:
        missing = no_route(stored.topic)
        return Answer(missing.code, missing.remark, depends=depends)
    answer = stored.made[kind] = Answer(body=body, depends=depends)
    return answer
