"""The result of a comparison: as a document, as text, and as redis-namesrv takes it (docs/http-api.md)."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from mqns.cli.doctor.differences import Difference
from mqns.cli.doctor.findings import named
from mqns.cli.drift.look import Look, Pair
from mqns.cli.http_api import HttpApi, name_in_path
from mqns.cli.output import Document, builtins, plain, table

__all__ = [
    "DifferenceDocument",
    "DriftDocument",
    "UnreachableDocument",
    "document",
    "line",
    "report",
    "shown",
]

Outcome = Literal["same", "drift", "unreachable"]
EXAMPLES: Final = 20
"""Differences that a result has; the counts are of all."""
CHARACTERS: Final = 300
"""Of a text of a result."""


class DifferenceDocument(Document, frozen=True):
    """One of the differences: its kind, what it is about, and what the name servers say of it."""

    kind: str
    subject: str
    what: str


class UnreachableDocument(Document, frozen=True):
    """A name server that cannot be compared, and why."""

    name_server: str
    reason: str


class DriftDocument(Document, frozen=True):
    """The result; `counts` of differences by kind, none of a kind without any, and the first 20 as `examples`."""

    name_servers: Pair
    outcome: Outcome
    counts: dict[str, int]
    unreachable: tuple[UnreachableDocument, ...]
    examples: tuple[DifferenceDocument, ...]

    def says_the_same_as(self, other: "DriftDocument | None") -> bool:
        """Return whether another result says the same, but for examples and reasons."""
        return other is not None and self._said() == other._said()

    def _said(self) -> tuple[Mapping[str, int], tuple[str, ...]]:
        return self.counts, tuple(one.name_server for one in self.unreachable)


class _Written(msgspec.Struct, rename="camel"):
    event_id: str | None


def document(pair: Pair, look: Look) -> DriftDocument:
    """Return the result of a look."""
    counts = Counter(one.kind for one in look.differences)
    outcome: Outcome = "unreachable" if look.unanswered else "drift" if counts else "same"
    return DriftDocument(
        pair,
        outcome,
        dict(counts),
        tuple(UnreachableDocument(one.name_server, _text(one.reason)) for one in look.unanswered),
        tuple(map(_example, _of_each_kind(look.differences))),
    )


def report(api: HttpApi, name: str, result: DriftDocument, valid_for_s: int) -> None:
    """Report a result under the name of its comparison. Raises HttpError, ConnectError, CallTimeout."""
    members = builtins(result) | {"validForSeconds": valid_for_s}
    del members["outcome"]
    api.request(_Written, "PUT", f"/v1/drift/{name_in_path(name)}", members)


def line(result: DriftDocument) -> str:
    """Return the result in one line, with the first subjects of each kind."""
    between = " and ".join(result.name_servers)
    if result.unreachable:
        reasons = "; ".join(f"{one.name_server}: {one.reason}" for one in result.unreachable)
        return f"{between} cannot be compared: {reasons}"
    if not result.counts:
        return f"{between} agree"
    kinds = ", ".join(
        f"{number} {kind} ({named(one.subject for one in result.examples if one.kind == kind)})"
        for kind, number in result.counts.items()
    )
    return f"{between} differ: {kinds}"


def shown(result: DriftDocument) -> RenderableType:
    """Return the result for a terminal: the line, and a table of the examples."""
    if not result.examples:
        return Text(plain(line(result)))
    counts = ", ".join(f"{number} {kind}" for kind, number in result.counts.items())
    more = sum(result.counts.values()) - len(result.examples)
    rows = [(one.kind, one.subject, one.what) for one in result.examples]
    last = [Text(f"and {more} more")] if more else []
    heading = Text(plain(f"{' and '.join(result.name_servers)} differ: {counts}"))
    return Group(heading, Text(), table(("DIFFERENCE", "OF", "WHAT"), rows), *last)


def _of_each_kind(differences: tuple[Difference, ...]) -> list[Difference]:
    """Return as many as a result has: the first of each kind, then the second of each, and so on, by kind."""
    places = Counter[str]()
    ranked = []
    for one in differences:
        ranked.append((places[one.kind], one))
        places[one.kind] += 1
    ranked.sort(key=lambda place: place[0])
    chosen = [one for _, one in ranked[:EXAMPLES]]
    kinds = list(places)
    return sorted(chosen, key=lambda one: kinds.index(one.kind))


def _example(one: Difference) -> DifferenceDocument:
    return DifferenceDocument(one.kind, _text(one.subject), _text(one.what))


def _text(text: str) -> str:
    """Return a text in one line, cut; names and values of peers have any length and characters."""
    line = plain(text[:CHARACTERS]).replace("\t", "\\t") or '""'
    return line if len(text) <= CHARACTERS and len(line) <= CHARACTERS else f"{line[: CHARACTERS - 1]}…"
