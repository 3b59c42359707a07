"""Drains of brokers: routes show no write permission there until an operator or the time ends the drain."""

from typing import Annotated

from apiflask import APIBlueprint
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from api.name_server import name_server, origin
from api.problems import Problem
from api.shapes import Answer, Body, Int64, Written
from registry.drains import Drain, Drained, drain, drain_of, undrain

bp = APIBlueprint("drains", __name__, url_prefix="/v1/brokers")


def _line(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("line", "not one line of printable text")
    return text


Owner = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_line)]
Reason = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_line)]


class DrainBody(Body):
    """Owner and reason of the drain. `untilMillis` (Unix ms by the store's clock) null: until it is deleted."""

    owner: Owner
    reason: Reason
    until_millis: Int64 | None = None


class DrainAnswer(Answer):
    owner: str
    reason: str
    until_millis: int | None


class DrainWritten(Written):
    """`topicCount` is how many topics the broker has."""

    topic_count: int

    @classmethod
    def of_drained(cls, drained: Drained) -> "DrainWritten":
        return cls(event_id=drained.event_id or None, topic_count=drained.topics)


@bp.put("/<name>/drain")
@bp.input(DrainBody)
@bp.output(DrainWritten)
@bp.doc(responses=[404])
def put_drain(name: str, json_data: DrainBody) -> DrainWritten:
    """Keep producers off a broker

    Routes show its topics without write permission, also after it was restarted. Replaces an earlier drain."""
    server = name_server()
    wanted = Drain(json_data.owner, json_data.reason, json_data.until_millis)
    return DrainWritten.of_drained(server.run(drain(server.keys, name, wanted, origin(), server.limits)))


@bp.get("/<name>/drain")
@bp.output(DrainAnswer)
@bp.doc(responses=[404])
def get_drain(name: str) -> DrainAnswer:
    """The drain of a broker"""
    server = name_server()
    stored = server.run(drain_of(server.keys, name))
    if stored is None:
        raise Problem(404, "drain-not-found", f"broker {name!r} is not drained")
    return DrainAnswer(owner=stored.owner, reason=stored.reason, until_millis=stored.until_ms)


@bp.delete("/<name>/drain")
@bp.output(DrainWritten)
@bp.doc(responses=[404])
def delete_drain(name: str) -> DrainWritten:
    """Let producers come back to a broker

    Its topics have the permissions again that it registered or was given."""
    server = name_server()
    return DrainWritten.of_drained(server.run(undrain(server.keys, name, origin())))
