"""Entries of streams in pages: the parameters and the answer of `/v1/events` and `/v1/audit`."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from api.name_server import name_server
from api.paging import Limit
from api.shapes import Answer, EntryId, Moment, Query
from registry.errors import InvalidField
from registry.events.entry import FIRST, LAST, Event, EventId, following, preceding
from registry.events.filters import Filter
from registry.events.pages import Page, Range, read_page
from registry.events.values import number_or_none, values_of
from registry.keys import Keys
from registry.plans import Plan

Ranges = Callable[[Keys, EventId, EventId], Plan[Sequence[Range]]]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
PAGING = frozenset({"limit", "after"})


class EntriesQuery(Query):
    """`after` is the `next` of the page before. `since` and `until` are times of record, both included. `kind` may be
    several, with commas. `actor` may be the beginning of one, up to a colon."""

    order: Literal["asc", "desc"] = "asc"
    kind: Text | None = None
    topic: Text | None = None
    broker: Text | None = None
    cluster: Text | None = None
    actor: Text | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Limit = 100
    after: EntryId | None = None

    @property
    def wanted(self) -> Filter:
        """What entries have to be. A consumer asks for the pages alone, and needs checkpoint entries."""
        kinds = frozenset(filter(None, (self.kind or "").split(",")))
        consumes = self.model_fields_set <= PAGING
        return Filter(kinds, self.actor, self.topic, self.broker, self.cluster, checkpoints=consumes)

    @property
    def bounds(self) -> tuple[EventId, EventId]:
        """The first and the last id that an entry may have. Raises InvalidField."""
        first = FIRST if self.since is None else EventId(self.since)
        last = LAST if self.until is None else EventId(self.until, LAST.number)
        if last < first:
            raise InvalidField("until", "before since")
        if self.after is None:
            return first, last
        after = EventId.parse(self.after)
        if self.order == "desc":
            return first, min(last, preceding(after))
        return max(first, following(after)), last


class Entry(Answer):
    """An entry of a stream. `data` are the fields of its kind, JSON and numbers decoded; `fields` are all of them as
    written. Null is what the entry does not have, or what is no number."""

    id: str
    at_millis: int
    kind: str | None
    cause: str | None
    inc: int | None
    seq: int | None
    part: str | None
    op: str | None
    actor: str | None
    peer: str | None
    data: dict[str, Any]
    fields: dict[str, str]

    @classmethod
    def of(cls, event: Event) -> "Entry":
        fields = event.fields
        return cls(
            id=str(event.id),
            at_millis=event.id.ms,
            kind=fields.get("kind"),
            cause=fields.get("cause"),
            inc=number_or_none(event.get("inc")),
            seq=number_or_none(event.get("seq")),
            part=fields.get("part"),
            op=fields.get("op"),
            actor=fields.get("actor"),
            peer=fields.get("peer"),
            data=values_of(event),
            fields=dict(fields),
        )


class Entries(Answer):
    """`next` is where to go on: oldest first even when no more is there yet, newest first null at the end.
    `more`: there may be others there already, also where this page has few or none."""

    events: tuple[Entry, ...]
    next: str | None
    more: bool


def entries(query: EntriesQuery, ranges: Ranges) -> Entries:
    """Return the page that a request asks for. Raises InvalidField."""
    server = name_server()
    newest_first = query.order == "desc"
    page = server.run(_read(server.keys, query, ranges, newest_first))
    examined = query.after if page.examined is None else str(page.examined)
    at_end = newest_first and not page.more
    return Entries(
        events=tuple(map(Entry.of, page.events)), next=None if at_end else examined, more=page.more
    )


def _read(keys: Keys, query: EntriesQuery, ranges: Ranges, newest_first: bool) -> Plan[Page]:
    first, last = query.bounds
    listed = yield from ranges(keys, first, last)
    return (yield from read_page(listed, query.wanted, newest_first=newest_first, limit=query.limit))
