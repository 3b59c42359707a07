"""Topics: search by the beginning of a name, and one of them: its route, its queue data, and their changes."""

from typing import Final

from flask import Response, request

from api.console.asking import Reply, ask, path
from api.console.blueprint import bp
from api.console.changes import Change, carry_out
from api.console.cluster_names import cluster_names
from api.console.formats import permission
from api.console.page import show
from api.console.route_picture import picture_of
from api.console.topic_route import TopicRoute, topic_route
from api.paging import LIMIT_MOST, PageQuery, page
from api.problems import Problem
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE

__all__: list[str] = []

LISTED: Final = 200
ROWS: Final = 100
PERMISSIONS: Final = (PERM_READ | PERM_WRITE, PERM_READ, PERM_WRITE, 0)


@bp.get("/topics")
def topics_page() -> Response:
    """Topics by the beginning of their names"""
    wanted = {name: request.args.get(name) for name in ("prefix", "cluster", "broker", "after")}
    topics = ask("GET", path("topics"), {**wanted, "limit": LISTED})
    clusters = cluster_names() if topics.ok else ()
    return show("topics.html", "topics", replies=(topics,), topics=topics, clusters=clusters)


@bp.get("/topics/<topic>")
def topic_page(topic: str) -> Response:
    """One topic and its route"""
    route = ask("GET", path("routes", topic))
    known = _topic_route(route)
    names, following = page(
        [row.name for row in known.rows], PageQuery(limit=ROWS, after=request.args.get("after", ""))
    )
    return show(
        "topic.html",
        "topics",
        replies=(route,),
        topic=topic,
        route=route,
        known=known,
        picture=picture_of(topic, known.rows) if route.ok else None,
        rows=[known.row(name) for name in names],
        next=following,
        chosen=known.row(request.args.get("broker", "")),
        permissions=PERMISSIONS,
    )


def _topic_route(route: Reply) -> TopicRoute:
    drains = ask("GET", path("drains"), {"limit": LIMIT_MOST}) if route.ok else route
    return topic_route(route.body if route.ok else {}, drains.body["drains"] if drains.ok else ())


@bp.post("/topics/<topic>/queues")
def set_queues(topic: str) -> Response:
    """Set the queue data of a topic on a broker"""
    broker = request.form.get("broker", "").strip()
    read, write, wanted = (_number(field) for field in ("read", "write", "perm"))
    stored = ask("GET", path("topics", topic))
    if not stored.ok and stored.state != "missing":
        return show("failure.html", "topics", replies=(stored,), reply=stored)
    perm, flag = _beside(stored, broker)
    remark = (
        f"{read} queues to read, {write} to write, {permission(wanted)}, until the broker registers changed "
    )
    remark += "topics."
    if ask("GET", path("brokers", broker, "drain")).state != "missing":
        remark += " It is drained: routes show no write permission there until the drain ends."
    return carry_out(
        Change(
            title=f"Set queue data of {topic} on {broker}?",
            button="Set it",
            section="topics",
            back=("topics", topic),
            method="PUT",
            target=path("topics", topic),
            body={
                "queueDatas": [
                    {
                        "brokerName": broker,
                        "readQueueNums": read,
                        "writeQueueNums": write,
                        "perm": perm | wanted,
                        "topicSysFlag": flag,
                    }
                ]
            },
            remark=remark,
        )
    )


def _beside(stored: Reply, broker: str) -> tuple[int, int]:
    """Return the bits of the permission and the flag that a topic has on a broker, and the form has not: they stay."""
    for data in stored.body["queueDatas"] if stored.ok else ():
        if data["brokerName"] == broker:
            return data["perm"] & ~(PERM_READ | PERM_WRITE), data["topicSysFlag"]
    return 0, 0


def _number(field: str) -> int:
    text = request.form.get(field, "").strip()
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise Problem(422, "invalid-field", f"{field}: not a whole number", field=field)
    return int(text)


@bp.post("/topics/<topic>/delete")
def delete_topic(topic: str) -> Response:
    """Delete a topic, of one cluster or of all"""
    cluster = request.form.get("cluster", "")
    return carry_out(
        Change(
            title=f"Delete {topic} from {f'cluster {cluster}' if cluster else 'all clusters'}?",
            button="Delete it",
            section="topics",
            back=("topics", topic),
            method="DELETE",
            target=path("topics", topic),
            query={"cluster": cluster},
            takes_away=True,
            remark="A broker that still has it brings it back with its next registration: delete it there, too.",
        )
    )
