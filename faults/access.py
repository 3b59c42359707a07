"""What callers may be answered while something breaks, with access enforced, and what they were (faults/callers.py)."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from faults.callers import (
    CERTIFICATE,
    FILE_TOKEN,
    KEY,
    NEW_TOKEN,
    REVOKED_KEY_OF,
    REVOKED_TOKEN,
    TOKEN,
    UNKNOWN_KEY,
    UNKNOWN_TOKEN,
    WRITER,
    Asked,
    Outcome,
)
from faults.judgement import Span

SETTLED_S: Final = 1.5
"""After the beginning of a fault: what the store had is used for half a second, and a request may be under way."""
AGAIN_S: Final = 3.0
"""How much later than all else access may be as before: a process asks a store that did not answer once a second."""

LET_IN, TURNED_AWAY, STORE_AWAY = Outcome.LET_IN, Outcome.TURNED_AWAY, Outcome.STORE_AWAY
IN: Final = frozenset({LET_IN, STORE_AWAY, Outcome.UNANSWERED})
OUT: Final = frozenset({TURNED_AWAY, STORE_AWAY, Outcome.UNANSWERED})


class Rule(NamedTuple):
    """`before`, and after: what a caller is answered. `may` is what may come at any time, `without` while no process
    reaches the store."""

    before: Outcome
    may: frozenset[Outcome]
    without: Outcome


RULES: Final[Mapping[str, Rule]] = {
    KEY: Rule(LET_IN, IN, LET_IN),
    CERTIFICATE: Rule(LET_IN, IN, LET_IN),
    FILE_TOKEN: Rule(LET_IN, IN, LET_IN),
    TOKEN: Rule(LET_IN, IN, LET_IN),
    NEW_TOKEN: Rule(LET_IN, IN, STORE_AWAY),
    WRITER: Rule(LET_IN, IN, STORE_AWAY),
    REVOKED_KEY_OF: Rule(TURNED_AWAY, OUT, TURNED_AWAY),
    REVOKED_TOKEN: Rule(TURNED_AWAY, OUT, TURNED_AWAY),
    UNKNOWN_KEY: Rule(TURNED_AWAY, OUT, TURNED_AWAY),
    UNKNOWN_TOKEN: Rule(TURNED_AWAY, OUT, STORE_AWAY),
}
ON_THE_WIRE: Final = frozenset({KEY, CERTIFICATE, REVOKED_KEY_OF})
OF_THE_STORE: Final = frozenset({TOKEN, NEW_TOKEN, WRITER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """That a row is run with access enforced. `away`: no process reaches the store while the fault lasts;
    `workers_begin`: a remoting worker begins meanwhile, and does not know what is revoked; `tokens_lost`: the store
    comes back without its tokens."""

    away: bool = False
    workers_begin: bool = False
    tokens_lost: bool = False


class Counts(msgspec.Struct, frozen=True):
    """How often each outcome came of a caller's requests from the fault's beginning on, and when it was as before, in
    seconds from the fault's end."""

    caller: str
    outcomes: dict[str, int]
    again_s: float


def counts(asked: Collection[Asked], span: Span, enforcement: Enforcement) -> Iterator[Counts]:
    """Yield the counts of each caller."""
    for caller in RULES:
        of = [one for one in asked if one.caller == caller and one.end >= span.begin]
        other = [one.end - span.end for one in of if one.outcome is not _after(caller, enforcement)]
        outcomes = Counter(one.outcome.value for one in of)
        yield Counts(caller, dict(outcomes), max((0.0, *other)))


def again_from(span: Span, recovers_s: float) -> float:
    """Return from when on callers have to be answered as before, where all else is right `recovers_s` after the end."""
    return span.end + recovers_s + AGAIN_S


def complaints(
    asked: Sequence[Asked], span: Span, enforcement: Enforcement, *, lasts_s: float, recovers_s: float
) -> Iterator[str]:
    """Yield what was broken: a caller that was answered what it may not be, or was not asked.

    The fault stood for `lasts_s` before it was ended; all else has to be right again `recovers_s` after its end."""
    away = Span(span.begin + SETTLED_S, span.begin + lasts_s) if enforcement.away else None
    again = again_from(span, recovers_s)
    for caller in RULES:
        of = [one for one in asked if one.caller == caller]
        missing = {"before", "after", *(("meanwhile",) if away else ())}
        for one in of:
            phase = _phase(one, span, away, again)
            missing.discard(phase)
            expected = _expected(caller, phase, enforcement)
            if one.outcome not in expected:
                yield f"{caller} {one.begin - span.begin:+.1f} s: {one.outcome.value} ({one.answer.strip()})"
        if missing:
            yield f"{caller} was not asked {' or '.join(sorted(missing))}"


def _phase(one: Asked, span: Span, away: Span | None, again: float) -> str:
    if one.end < span.begin:
        return "before"
    if one.begin > again:
        return "after"
    return "meanwhile" if away and away.begin < one.begin and one.end < away.end else "between"


def _expected(caller: str, phase: str, enforcement: Enforcement) -> frozenset[Outcome]:
    rule = RULES[caller]
    if phase == "before":
        return frozenset({rule.before})
    if phase == "after":
        return frozenset({_after(caller, enforcement)})
    if phase == "meanwhile" and not (enforcement.workers_begin and caller in ON_THE_WIRE):
        return frozenset({rule.without})
    return rule.may | {_after(caller, enforcement)}


def _after(caller: str, enforcement: Enforcement) -> Outcome:
    is_gone = enforcement.tokens_lost and caller in OF_THE_STORE
    return TURNED_AWAY if is_gone else RULES[caller].before
