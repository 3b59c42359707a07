"""Entries of the event stream and of the audit, newest first, filtered; the filter is in the URL."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
from flask import Response, request

from api.console.asking import Query, ask, path
from api.console.blueprint import bp
from api.console.page import show
from api.console.times import as_asked
from registry.events.entry import AUDITED_KINDS, EventKind

__all__ = ["FIELDS", "asked"]

LIMIT: Final = 50
FIELDS: Final = ("kind", "broker", "topic", "cluster", "actor", "since", "until")
"""Parameters of a filter, of the page as of the API."""


class Choice(msgspec.Struct, frozen=True):
    """Kinds to choose: `kinds` with commas between them."""

    title: str
    kinds: str


class Source(msgspec.Struct, frozen=True):
    """A list of entries. `section` is its path, of the page and in the API; `several` and `each` are its kinds."""

    section: str
    title: str
    about: str
    several: tuple[Choice, ...]
    each: tuple[Choice, ...]


def _each(kinds: Sequence[str]) -> tuple[Choice, ...]:
    return tuple(Choice(kind.replace("_", " "), kind) for kind in kinds)


EVENTS: Final = Source(
    "events",
    "Events",
    "Every change that clients can see, and every operator's change, as the event stream keeps it.",
    (
        Choice("brokers", "broker_registered,broker_updated,broker_removed"),
        Choice("topics", "topics_changed,mappings_changed"),
        Choice("drains, KV, settings", "drain_changed,kv_changed,settings_changed"),
        Choice("access", "access_changed,access_denied"),
        Choice("trouble", "conflict_seen,hold_changed,tables_repaired,drift_changed,stream_started"),
    ),
    _each(tuple(EventKind)),
)
AUDIT: Final = Source(
    "audit",
    "Audit",
    "What operators and known callers did or were refused. It is kept longer than the event stream.",
    (),
    _each([kind for kind in EventKind if kind in AUDITED_KINDS or kind == EventKind.TOPICS_CHANGED]),
)


@bp.get("/events")
def events() -> Response:
    """The timeline of changes"""
    return _page(EVENTS)


@bp.get("/audit")
def audit() -> Response:
    """Operators' changes, by actor"""
    return _page(AUDIT)


def asked(given: Mapping[str, str]) -> dict[str, str]:
    """Return a filter as the API reads it."""
    return {name: as_asked(text) if name in ("since", "until") else text for name, text in given.items()}


def _page(source: Source) -> Response:
    given = {name: request.args.get(name, "").strip() for name in FIELDS}
    after = request.args.get("after", "")
    query: Query = {**asked(given), "order": "desc", "limit": LIMIT, "after": after}
    reply = ask("GET", path(source.section), query)
    return show(
        "timeline.html",
        source.section,
        replies=(reply,),
        source=source,
        given=given,
        filtered=any(given.values()),
        first=not after,
        reply=reply,
        operations=_operations(reply.body["events"]) if reply.ok else (),
        reached_ms=_reached(reply.body) if reply.ok else None,
    )


def _operations(listed: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return entries that follow one another, those of one operation together."""
    return [list(same) for _, same in groupby(listed, key=lambda event: event["op"] or event["id"])]


def _reached(body: Mapping[str, Any]) -> int | None:
    """Return how far back was looked (Unix ms) where the page ended before it was full; None of a full or last one."""
    if body["next"] is None or len(body["events"]) == LIMIT:
        return None
    return int(body["next"].partition("-")[0])
