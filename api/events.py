"""The event stream as it is stored, page by page, and requests for checkpoint rounds."""

from typing import Annotated, Final

from apiflask import APIBlueprint
from pydantic import StringConstraints

from api.name_server import name_server, origin
from api.paging import Limit
from api.shapes import Answer, Body, Query
from registry.events.checkpoint import request_round
from registry.keys import Keys
from registry.plans import Plan, call

Entry = tuple[str, dict[str, str]]
PAGE_CHARACTERS: Final = 2_000_000
"""With so many a page ends: a thousand entries of 256 KB would keep Redis and this process busy for seconds."""
ENTRIES_AT_ONCE: Final = 32

bp = APIBlueprint("events", __name__, url_prefix="/v1/events")


class EventsQuery(Query):
    limit: Limit = 100
    after: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,19}-[0-9]{1,19}$")] | None = None


class EventEntry(Answer):
    """An entry with its fields as written: text, JSON within the text where the field holds a structure."""

    id: str
    fields: dict[str, str]


class Events(Answer):
    """`next` is where to go on, even when no more is there yet; null while the stream has nothing."""

    events: tuple[EventEntry, ...]
    next: str | None


class CheckpointBody(Body):
    """There is nothing to choose."""


class Asked(Answer):
    """The round begins behind the entry `after`, soon; null while the stream has none."""

    after: str | None


@bp.get("")
@bp.input(EventsQuery, location="query")
@bp.output(Events)
def events(query_data: EventsQuery) -> Events:
    """Changes, oldest first

    A page of long entries has fewer than `limit`."""
    server = name_server()
    entries = server.run(_entries(server.keys, query_data.after, query_data.limit))
    events = tuple(EventEntry(id=entry_id, fields=fields) for entry_id, fields in entries)
    return Events(events=events, next=entries[-1][0] if entries else query_data.after)


@bp.post("/checkpoints")
@bp.input(CheckpointBody)
@bp.output(Asked)
def ask_for_checkpoint(json_data: CheckpointBody) -> Asked:
    """Request a checkpoint round, which writes all tables into the stream

    For readers that cannot begin with the first entry, or have missed some."""
    server = name_server()
    return Asked(after=server.run(request_round(server.keys, "request", origin())) or None)


def _entries(keys: Keys, after: str | None, limit: int) -> Plan[list[Entry]]:
    """Return the next entries: `limit`, or fewer if these are long."""
    entries: list[Entry] = []
    characters = 0
    while len(entries) < limit and characters < PAGE_CHARACTERS:
        count = min(limit - len(entries), ENTRIES_AT_ONCE)
        more: list[Entry] = yield call(
            "XRANGE", keys.events, f"({after}" if after else "-", "+", "COUNT", count
        )
        entries += more
        if len(more) < count:
            break
        after = more[-1][0]
        characters += sum(len(text) for _, fields in more for text in fields.values())
    return entries
