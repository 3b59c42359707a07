"""The figures and wrong routes of a row, from lookups, notes of brokers and the presence of brokers."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from faults.lookups import Lookup
from faults.notes import Note
from faults.truth import Presence, Truth

ADDRESS = re.compile(r"127\.\d+\.\d+\.\d+'?[:,] ?\d+")


class Span(msgspec.Struct, frozen=True):
    """The begin and end of a fault, in seconds of the monotonic clock."""

    begin: float
    end: float


def wrong(lookup: Lookup, serving: Mapping[str, str], truth: Truth, behind_s: float) -> str:
    """Return what is wrong in a reply, "" if nothing; `serving` are the brokers of the topic, name -> address.

    A reply may be `behind_s` behind the replies that brokers got; it may show an UNCERTAIN broker or not."""
    if lookup.error:
        return ""
    for name, address in lookup.brokers.items():
        if serving.get(name) != address:
            return f"{lookup.topic}: {name} at {address} never registered it"
    for name in serving:
        presence = truth.of(name).certain(lookup.asked - behind_s, lookup.answered)
        if presence is Presence.PRESENT and name not in lookup.brokers:
            return f"{lookup.topic}: {name} is missing"
        if presence is Presence.AWAY and name in lookup.brokers:
            return f"{lookup.topic}: {name} is gone"
    return ""


class Figures(msgspec.Struct, frozen=True):
    """Figures of lookups and registrations from the fault's beginning on; times in seconds."""

    lookups: int
    failed: int
    failed_steady: int
    """Failed lookups of topics whose brokers all stay."""
    wrong: list[str]
    unanswered_s: float
    """The longest that lookup connection was without a right reply, from the first request that had none."""
    unanswered_steady_s: float
    """The same, without topics whose brokers come and go."""
    registrations: int
    failed_registrations: int
    last_trouble_s: float
    """From the fault's end to the last lookup or registration that failed; negative: before the end."""
    errors: dict[str, int]
    """Errors of lookups and registrations, and how often each came."""


def figures(
    lookups: Iterable[Lookup],
    notes: Iterable[Note],
    serving: Mapping[str, Mapping[str, str]],
    changing: Container[str],
    truth: Truth,
    span: Span,
    behind_s: float,
) -> Figures:
    """Return the figures of a row; `changing` are the topics of brokers that come and go."""
    ordered = sorted(lookups, key=lambda lookup: lookup.answered)
    complaints = {id(lookup): wrong(lookup, serving[lookup.topic], truth, behind_s) for lookup in ordered}
    bad = [lookup for lookup in ordered if lookup.error or complaints[id(lookup)]]
    registrations = [note for note in notes if note.kind in ("registered", "failed")]
    refused = [note for note in registrations if note.kind == "failed"]
    steady = [lookup for lookup in ordered if lookup.topic not in changing]
    errors = Counter(
        f"lookup of {'a changing' if lookup.topic in changing else 'a steady'} topic: {_unnumbered(lookup.error)}"
        for lookup in ordered
        if lookup.error
    )
    errors.update(f"registration: {_unnumbered(note.why)}" for note in refused)
    at_fault = {id(lookup) for lookup in bad}
    return Figures(
        lookups=len(ordered),
        failed=sum(bool(lookup.error) for lookup in ordered),
        failed_steady=sum(bool(lookup.error) for lookup in steady),
        wrong=[
            f"{lookup.answered - span.begin:+.2f} s: {complaints[id(lookup)]}"
            for lookup in bad
            if not lookup.error
        ],
        unanswered_s=_unanswered_s(ordered, at_fault),
        unanswered_steady_s=_unanswered_s(steady, at_fault),
        registrations=len(registrations),
        failed_registrations=len(refused),
        last_trouble_s=max(
            (*(lookup.answered for lookup in bad), *(note.at for note in refused)), default=span.begin
        )
        - span.end,
        errors=dict(errors),
    )


def _unanswered_s(ordered: Iterable[Lookup], at_fault: Container[int]) -> float:
    """Return the longest time of any connection from a request to the next right reply."""
    since: dict[int, float] = {}
    longest = 0.0
    for lookup in ordered:
        begun = since.setdefault(lookup.over, lookup.asked)
        if id(lookup) not in at_fault:
            longest = max(longest, lookup.answered - begun)
            del since[lookup.over]
    return longest


def _unnumbered(error: str) -> str:
    """Return the text without addresses, so that equal errors are equal."""
    return ADDRESS.sub("…", error)


def unrepeated(notes: Sequence[Note], steady: Iterable[str], since: float, within_s: float) -> set[str]:
    """Return the brokers of which no registration was accepted within `within_s` seconds of `since`."""
    back = {note.broker for note in notes if note.kind == "registered" and 0 < note.at - since <= within_s}
    return set(steady) - back
