"""Answers of dry runs: those of the change, and a member that says what it would mean.

A dry run counts as a read, and may cost what a large change does: few are under way at once."""

from collections import Counter
from http import HTTPStatus
from threading import BoundedSemaphore
from typing import Annotated, Any, Final

from flask import Flask, Response, current_app, g
from pydantic import Field

from access.classes import AccessClass
from api.dry_run import PARAMETER, dry_run
from api.guard import guard
from api.methods import SAFE
from api.name_server import name_server
from api.problems import Problem
from api.shapes import Answer
from registry.drivers import run
from registry.dry_run import DryRun
from registry.route_changes import brokers_of, route_changes
from rocketmq_remoting import route_changes as changes

__all__ = ["describe", "install"]

MEMBER: Final = "dryRun"
AT_ONCE: Final = 2
"""Dry runs under way in an HTTP worker."""
DESCRIPTION: Final = (
    "true: answer as if it were done, and change nothing; `eventId` is null then, and `dryRun` says more"
)


class Named(Answer):
    """How many there are, and the names of the first ten, sorted; none for a caller that may not read them."""

    count: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, named: changes.Named) -> "Named":
        return cls(count=named.count, names=named.names if guard().admits(AccessClass.READ) else ())


class QueueCounts(Answer):
    """Queues of the routes that change, of all their brokers."""

    before: int
    after: int

    @classmethod
    def of(cls, counts: changes.QueueCounts) -> "QueueCounts":
        return cls(before=counts.before, after=counts.after)


class RoutesAnswer(Answer):
    """Topics whose routes change, as their clients see. Of `ended` no broker is left; of `unwritable` no queue, where
    there is one now, that a producer can write to. So many further topics are `unexamined`."""

    changed: Named
    ended: Named
    unwritable: Named
    read_queues: QueueCounts
    write_queues: QueueCounts
    unexamined: int


class DryRunAnswer(Answer):
    """What the change would be; only the answer of a dry run has it."""

    events: Annotated[
        dict[str, int], Field(description="how many entries of each kind the event stream would get")
    ]
    brokers: Named
    routes: RoutesAnswer


def install(app: Flask) -> None:
    """Have the answers of dry runs say what the change would mean, and refuse more at once than a worker has."""
    places = BoundedSemaphore(AT_ONCE)

    @app.before_request
    def take_place() -> None:
        if dry_run() is None:
            return
        if not places.acquire(blocking=False):
            detail = f"{AT_ONCE} dry runs are under way in this process; ask again in a second"
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail)
        g.has_place = True

    @app.teardown_request
    def leave_place(_: BaseException | None) -> None:
        if g.pop("has_place", False):
            places.release()

    @app.after_request
    def tell(response: Response) -> Response:
        dry = dry_run()
        if dry is None or response.status_code != HTTPStatus.OK:
            return response
        answer: dict[str, Any] = response.get_json()
        if "eventId" in answer:
            answer["eventId"] = None
        answer[MEMBER] = _answer(dry).model_dump(by_alias=True)
        response.set_data(f"{current_app.json.dumps(answer)}\n")
        return response


def _answer(dry: DryRun) -> DryRunAnswer:
    server = name_server()
    found = run(route_changes(server.keys, dry), server.store, server.observe)
    return DryRunAnswer(
        events=Counter(entry["kind"] for entry in dry.entries),
        brokers=Named.of(brokers_of(dry)),
        routes=RoutesAnswer(
            changed=Named.of(found.changed),
            ended=Named.of(found.ended),
            unwritable=Named.of(found.unwritable),
            read_queues=QueueCounts.of(found.read_queues),
            write_queues=QueueCounts.of(found.write_queues),
            unexamined=found.unexamined,
        ),
    )


def describe(spec: dict[str, Any]) -> None:
    """Add the parameter and what it answers to the operations of an OpenAPI document that change something."""
    schemas = spec["components"]["schemas"]
    own = DryRunAnswer.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= own.pop("$defs") | {DryRunAnswer.__name__: own}
    for path in spec["paths"].values():
        for method, operation in path.items():
            if method.upper() not in SAFE:
                operation["parameters"].append(_parameter())
                (content,) = operation["responses"]["200"]["content"].values()
                name = content["schema"]["$ref"].rpartition("/")[2]
                member = {"$ref": f"#/components/schemas/{DryRunAnswer.__name__}"}
                schemas[name]["properties"][MEMBER] = member


def _parameter() -> dict[str, Any]:
    return {
        "name": PARAMETER,
        "in": "query",
        "required": False,
        "description": DESCRIPTION,
        "schema": {"type": "boolean"},
    }
