"""What of a row went wrong, from what clients were answered, what brokers told, and what was known of them."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from faults.lookups import Lookup
from faults.notes import Note
from faults.truth import Known, Truth

ADDRESS = re.compile(r"127\.\d+\.\d+\.\d+'?[:,] ?\d+")


class Span(msgspec.Struct, frozen=True):
    """When a fault began, and when it was over."""

    begin: float
    end: float


def wrong(lookup: Lookup, serving: Mapping[str, str], truth: Truth, behind_s: float) -> str:
    """What is not so in an answer, "" if nothing; `serving` is who announces the topic, name -> address.

    An answer may be `behind_s` behind what brokers were told, and where a broker is on its way in or out it may say
    either."""
    if lookup.error:
        return ""
    for name, address in lookup.brokers.items():
        if serving.get(name) != address:
            return f"{lookup.topic}: {name} at {address} never registered it"
    for name in serving:
        known = truth.of(name).certain(lookup.asked - behind_s, lookup.answered)
        if known is Known.THERE and name not in lookup.brokers:
            return f"{lookup.topic}: {name} is missing"
        if known is Known.AWAY and name in lookup.brokers:
            return f"{lookup.topic}: {name} is gone"
    return ""


class Figures(msgspec.Struct, frozen=True):
    """Of the lookups and heartbeats from the fault's beginning on; times in seconds."""

    lookups: int
    failed: int
    failed_steady: int
    """Of topics whose brokers all stay."""
    wrong: list[str]
    unanswered_s: float
    """The longest that one connection was without a right answer, from the first question that had none."""
    unanswered_steady_s: float
    """The same, with all answers to questions about topics whose brokers come and go left out."""
    beats: int
    failed_beats: int
    last_trouble_s: float
    """From the fault's end to the last question or heartbeat that came to nothing; negative: before the end."""
    errors: dict[str, int]
    """What lookups and heartbeats failed with, and how often."""


def figures(
    lookups: Iterable[Lookup],
    notes: Iterable[Note],
    serving: Mapping[str, Mapping[str, str]],
    changing: Container[str],
    truth: Truth,
    span: Span,
    behind_s: float,
) -> Figures:
    """Judge all lookups and registrations of a row; `changing` are the topics of brokers that come and go."""
    ordered = sorted(lookups, key=lambda one: one.answered)
    complaints = {id(one): wrong(one, serving[one.topic], truth, behind_s) for one in ordered}
    bad = [one for one in ordered if one.error or complaints[id(one)]]
    beats = [note for note in notes if note.kind in ("registered", "failed")]
    refused = [note for note in beats if note.kind == "failed"]
    steady = [one for one in ordered if one.topic not in changing]
    errors = Counter(
        f"lookup of {'a changing' if one.topic in changing else 'a steady'} topic: {_unnumbered(one.error)}"
        for one in ordered
        if one.error
    )
    errors.update(f"registration: {_unnumbered(note.why)}" for note in refused)
    at_fault = {id(one) for one in bad}
    return Figures(
        lookups=len(ordered),
        failed=sum(bool(one.error) for one in ordered),
        failed_steady=sum(bool(one.error) for one in steady),
        wrong=[f"{one.answered - span.begin:+.2f} s: {complaints[id(one)]}" for one in bad if not one.error],
        unanswered_s=_unanswered_s(ordered, at_fault),
        unanswered_steady_s=_unanswered_s(steady, at_fault),
        beats=len(beats),
        failed_beats=len(refused),
        last_trouble_s=max(
            (*(one.answered for one in bad), *(note.at for note in refused)), default=span.begin
        )
        - span.end,
        errors=dict(errors),
    )


def _unanswered_s(ordered: Iterable[Lookup], at_fault: Container[int]) -> float:
    """The longest time of any connection from a question to the next right answer."""
    since: dict[int, float] = {}
    longest = 0.0
    for lookup in ordered:
        begun = since.setdefault(lookup.over, lookup.asked)
        if id(lookup) not in at_fault:
            longest = max(longest, lookup.answered - begun)
            del since[lookup.over]
    return longest


def _unnumbered(error: str) -> str:
    """The text without addresses, so that equal errors are equal."""
    return ADDRESS.sub("…", error)


def lost(notes: Sequence[Note], steady: Iterable[str], since: float, within_s: float) -> set[str]:
    """The brokers of which no registration was accepted within so long."""
    back = {note.broker for note in notes if note.kind == "registered" and 0 < note.at - since <= within_s}
    return set(steady) - back
