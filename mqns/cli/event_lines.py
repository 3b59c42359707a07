"""An entry of the event stream as a line: when, what happened and why, to what, who did it (docs/events.md)."""

from difflib import get_close_matches
from typing import Annotated, Any

import msgspec

from mqns.cli.moments import moment_text
from mqns.cli.output import Document
from mqns.event_words import KINDS, Instant, Part, quoted, words_of

EntryId = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,20}-[0-9]{1,20}$")]


class EntryDocument(Document, frozen=True):
    """An entry as the HTTP API has it (docs/http-api.md), without its fields as they are written."""

    id: EntryId
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


def unknown_kind(kind: str) -> str | None:
    """Return a sentence about a kind that this release does not know, None for one that it knows."""
    if kind in KINDS:
        return None
    near = [known for known in KINDS if kind and known.startswith(kind)] or get_close_matches(
        kind, KINDS, n=1
    )
    meant = f"did you mean {' or '.join(near)}?" if near else f"kinds are {', '.join(KINDS)}"
    return f"--kind: {kind!r} is no kind that this release knows; {meant}"


def line_of(entry: EntryDocument, topic: str | None = None) -> str:
    """Return the entry in one line; `topic` comes first among the topics of an entry that names many."""
    kind = quoted(entry.kind) if entry.kind else "no kind"
    what = f"{kind}/{quoted(entry.cause)}" if entry.cause else kind
    actor = quoted(entry.actor) if entry.actor else "no actor"
    peer = f" ({quoted(entry.peer)})" if entry.peer else ""
    words = "".join(map(_text, words_of(entry.kind, entry.data, topic)))
    return f"{moment_text(entry.at_millis)} {what} {words} by {actor}{peer}"


def _text(part: Part) -> str:
    if isinstance(part, Instant):
        return moment_text(part.ms, "milliseconds" if part.exact else "seconds")
    return str(part)
