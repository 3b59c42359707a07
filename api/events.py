"""The event stream page by page, and requests for checkpoint rounds."""

from apiflask import APIBlueprint

from api.entries import Entries, EntriesQuery, entries
from api.name_server import name_server, origin
from api.shapes import Answer, Body
from registry.events.checkpoint import request_round
from registry.events.pages import event_ranges

bp = APIBlueprint("events", __name__, url_prefix="/v1/events")


class CheckpointBody(Body):
    """There is nothing to choose."""


class Asked(Answer):
    """The round begins behind the entry `after`, soon; null while the stream has none."""

    after: str | None


@bp.get("")
@bp.input(EntriesQuery, location="query")
@bp.output(Entries)
@bp.doc(operation_id="listEvents")
def events(query_data: EntriesQuery) -> Entries:
    """Changes, oldest or newest first

    A page has fewer than `limit` where entries are long or the filter matches few of them."""
    return entries(query_data, event_ranges)


@bp.post("/checkpoints")
@bp.input(CheckpointBody)
@bp.output(Asked)
@bp.doc(operation_id="requestCheckpoint")
def ask_for_checkpoint(json_data: CheckpointBody) -> Asked:
    """Request a checkpoint round, which writes all tables into the stream

    For readers that cannot begin with the first entry, or have missed some."""
    server = name_server()
    return Asked(after=server.run(request_round(server.keys, "request", origin())) or None)
