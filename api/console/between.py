"""What changed between two times, from the entries of the event stream between them: as far as a page may read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final

import msgspec
from flask import Response, request

from api.console.asking import Query, Reply, ask, path
from api.console.blueprint import bp
from api.console.net_changes import SUBJECTS, actors, net
from api.console.page import show
from api.console.times import as_asked, now_ms, or_none
from api.paging import LIMIT_MOST
from api.times import format_time

__all__: list[str] = []

MINUTE_MS: Final = 60_000
PRESETS: Final[Mapping[str, tuple[str, int]]] = {
    "15min": ("Last 15 minutes", 15 * MINUTE_MS),
    "hour": ("Last hour", 60 * MINUTE_MS),
    "day": ("Last day", 24 * 60 * MINUTE_MS),
}
FIRST_PAGE: Final = 20
GROWTH: Final = 4
"""Entries of brokers that register thousands of topics are long: more are read at once as long as time is left."""
ENTRIES_MOST: Final = 5000
CHARACTERS_MOST: Final = 6_000_000
"""A page reads no further behind so many: some 200,000 topics on brokers."""
READ_S: Final = 0.05
WHOLE_S: Final = 2.0
"""A page reads no further once it has read for so long; where all is asked for, for longer."""
SHOWN: Final = 12
"""Of each kind of things; the timeline has the others."""


class Read(msgspec.Struct, frozen=True):
    """Entries, the newest first; `reached` is where it went no further (Unix ms), None at the end."""

    entries: Sequence[Mapping[str, Any]]
    reached: int | None


@bp.get("/events/between")
def between() -> Response:
    """What changed between two times"""
    since, until = _times()
    if not since:
        return show("between.html", "events", presets=PRESETS, since="", until=until, reply=None)
    whole = "whole" in request.args
    reply, read = _read(since, until, WHOLE_S if whole else READ_S)
    nets = [(subject, net(subject, read.entries, SHOWN)) for subject in SUBJECTS]
    return show(
        "between.html",
        "events",
        replies=(reply,),
        presets=PRESETS,
        since=since,
        until=until,
        whole=whole,
        most=ENTRIES_MOST,
        reply=reply,
        read=read,
        nets=[(subject, changes) for subject, changes in nets if changes.total or changes.as_before],
        kinds=Counter(entry["kind"] or "" for entry in read.entries).most_common(),
        actors=actors(read.entries),
        shown=SHOWN,
        landed_ms=_landed(since) if reply.ok else None,
    )


def _times() -> tuple[str, str]:
    """Return the two times as the API reads them, of a preset without an end; "" of none."""
    preset = PRESETS.get(request.args.get("last", ""))
    if preset is not None:
        return format_time((now_ms() - preset[1]) // 1000 * 1000), ""
    return as_asked(request.args.get("since", "").strip()), as_asked(request.args.get("until", "").strip())


def _read(since: str, until: str, for_s: float) -> tuple[Reply, Read]:
    """Return the last answer of the API, and the entries of all."""
    entries: list[Mapping[str, Any]] = []
    ends_s, limit, characters, after = monotonic() + for_s, FIRST_PAGE, 0, ""
    while True:
        query: Query = {"order": "desc", "since": since, "until": until, "limit": limit, "after": after}
        reply = ask("GET", path("events"), query)
        if not reply.ok:
            return reply, Read((), None)
        entries += reply.body["events"]
        characters += sum(len(text) for entry in reply.body["events"] for text in entry["fields"].values())
        after = reply.body["next"]
        if after is None:
            return reply, Read(entries, None)
        if len(entries) >= ENTRIES_MOST or characters >= CHARACTERS_MOST or monotonic() >= ends_s:
            return reply, Read(entries, int(after.partition("-")[0]))
        limit = min(limit * GROWTH, LIMIT_MOST, ENTRIES_MOST - len(entries))


def _landed(since: str) -> int | None:
    """Return up to when the pipeline has history; None where it has none of these times."""
    run = ask("GET", path("reports"))
    until_ms: int | None = run.body["asOfMillis"] if run.ok else None
    from_ms = or_none(since)
    return until_ms if until_ms is not None and from_ms is not None and from_ms < until_ms else None
