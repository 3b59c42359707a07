"""Drains of brokers: routes show no write permission there until an operator or the time ends the drain."""

from collections.abc import Iterable
from typing import Annotated

from apiflask import APIBlueprint
from pydantic import Field

from api.name_server import name_server, origin
from api.paging import PageQuery, page
from api.problems import Problem
from api.shapes import Answer, Body, Int64, Line, Written
from registry.drains import (
    Drain,
    Drained,
    DrainedBroker,
    drain,
    drain_of,
    drained_brokers,
    drained_names,
    undrain,
)

bp = APIBlueprint("drains", __name__, url_prefix="/v1")


Owner = Annotated[Line, Field(min_length=1, max_length=255)]
Reason = Annotated[Line, Field(min_length=1, max_length=1000)]


class DrainBody(Body):
    """Owner and reason of the drain. `untilMillis` (Unix ms by the store's clock) null: until it is deleted."""

    owner: Owner
    reason: Reason
    until_millis: Int64 | None = None


class DrainAnswer(Answer):
    """Unix ms by the store's clock: since when, null if 0.1 set it; until when, null without an end."""

    owner: str
    reason: str
    since_millis: int | None
    until_millis: int | None


class DrainShown(Answer):
    """A drain as lists show it. One that is `damaged` is in force too; all else of it is null."""

    owner: str | None
    reason: str | None
    since_millis: int | None
    until_millis: int | None
    damaged: bool

    @classmethod
    def of(cls, broker: DrainedBroker) -> "DrainShown":
        stored = broker.drain
        if stored is None:
            return cls(owner=None, reason=None, since_millis=None, until_millis=None, damaged=True)
        return cls(
            owner=stored.owner,
            reason=stored.reason,
            since_millis=stored.since_ms,
            until_millis=stored.until_ms,
            damaged=False,
        )


class DrainRow(DrainShown):
    """`cluster` is null of a broker that is gone; `topicCount` is how many topics the broker has."""

    broker_name: str
    cluster: str | None
    topic_count: int

    @classmethod
    def of(cls, broker: DrainedBroker) -> "DrainRow":
        shown = DrainShown.of(broker).model_dump()
        return cls(**shown, broker_name=broker.name, cluster=broker.cluster, topic_count=broker.topics)


class Drains(Answer):
    drains: tuple[DrainRow, ...]
    next: str | None


class DrainWritten(Written):
    """`topicCount` is how many topics the broker has."""

    topic_count: int

    @classmethod
    def of_drained(cls, drained: Drained) -> "DrainWritten":
        return cls(event_id=drained.event_id or None, topic_count=drained.topics)


def drains_of(names: Iterable[str]) -> dict[str, DrainShown]:
    """Return the drains in force of these broker names, by name."""
    server = name_server()
    drained = server.run(drained_brokers(server.keys, tuple(names)))
    return {broker.name: DrainShown.of(broker) for broker in drained}


@bp.get("/drains")
@bp.input(PageQuery, location="query")
@bp.output(Drains)
@bp.doc(operation_id="listDrains")
def drains(query_data: PageQuery) -> Drains:
    """Drains in force by broker name

    A page may have fewer than `limit`: it leaves out drains that have just ended."""
    server = name_server()
    names, after = page(server.run(drained_names(server.keys)), query_data)
    listed = server.run(drained_brokers(server.keys, names))
    return Drains(drains=tuple(map(DrainRow.of, listed)), next=after)


@bp.put("/brokers/<name>/drain")
@bp.input(DrainBody)
@bp.output(DrainWritten)
@bp.doc(operation_id="putDrain", responses=[404])
def put_drain(name: str, json_data: DrainBody) -> DrainWritten:
    """Keep producers off a broker

    Routes show its topics without write permission, also after it was restarted. Replaces an earlier drain."""
    server = name_server()
    wanted = Drain(json_data.owner, json_data.reason, json_data.until_millis)
    drained = server.run(drain(server.keys, name, wanted, origin(), server.limits))
    return DrainWritten.of_drained(drained)


@bp.get("/brokers/<name>/drain")
@bp.output(DrainAnswer)
@bp.doc(operation_id="getDrain", responses=[404])
def get_drain(name: str) -> DrainAnswer:
    """The drain of a broker"""
    server = name_server()
    stored = server.run(drain_of(server.keys, name))
    if stored is None:
        raise Problem(404, "drain-not-found", f"broker {name!r} is not drained")
    return DrainAnswer(
        owner=stored.owner,
        reason=stored.reason,
        since_millis=stored.since_ms,
        until_millis=stored.until_ms,
    )


@bp.delete("/brokers/<name>/drain")
@bp.output(DrainWritten)
@bp.doc(operation_id="deleteDrain", responses=[404])
def delete_drain(name: str) -> DrainWritten:
    """Let producers come back to a broker

    Its topics have the permissions again that it registered or was given."""
    server = name_server()
    drained = server.run(undrain(server.keys, name, origin()))
    return DrainWritten.of_drained(drained)
