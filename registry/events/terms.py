"""What entries can be looked up by, as texts: those of an entry, and those that a filter asks for.

An entry that a filter wants has a text of each set that the filter asks for. The reverse need not be so."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from registry.events.entry import Event, EventKind
from registry.events.filters import KINDS, Filter, brokers_of, clusters_of, strings_of, topics_of

KIND, ACTOR, NAME = "kind ", "actor ", "name "
AUDITED: Final = "audited"
CHECKPOINT: Final = f"{KIND}{EventKind.CHECKPOINT}"
COLONS_MOST: Final = 16
"""An address of IPv6 and its port have eight."""


def terms_of(event: Event) -> Iterator[str]:
    """Yield the texts of an entry. Raises LookupError, ValueError, RecursionError for damage: it may name anything.

    Of a checkpoint entry it is the kind alone: it names what is there, and few readers want it."""
    yield f"{KIND}{event.kind}"
    if event.kind == EventKind.CHECKPOINT:
        return
    if event.is_audited:
        yield AUDITED
    for actor in _actors_of(event):
        yield f"{ACTOR}{actor}"
    for name in _names_of(event):
        yield f"{NAME}{name}"


def terms_wanted(wanted: Filter) -> tuple[frozenset[str], ...]:
    """Return sets of texts; an entry that is wanted has one of each. None of them for a filter that wants any entry."""
    names = (name for name in (wanted.topic, wanted.broker, wanted.cluster) if name is not None)
    sets = [frozenset((f"{NAME}{name}",)) for name in names]
    if wanted.kinds:
        sets.append(frozenset(f"{KIND}{kind}" for kind in wanted.kinds))
    if wanted.audited:
        sets.append(frozenset((AUDITED,)))
    if wanted.actor is not None:
        _, colon, rest = wanted.actor.partition(":")
        sets.append(frozenset(f"{ACTOR}{text}" for text in (wanted.actor, *([rest] if colon else ()))))
    if wanted.wants_checkpoints:
        sets = [terms | {CHECKPOINT} for terms in sets]
    return tuple(sets)


def _actors_of(event: Event) -> Iterator[str]:
    """Yield the first part of the entry's actor, and the beginnings of what follows it and of the peer, up to a colon.

    So an actor that `filters.is_of_actor` takes for the entry's is here, or what it has behind its own first colon."""
    first, _, rest = event.get("actor").partition(":")
    yield first
    for text in (rest, event.get("peer")):
        parts = text.split(":", COLONS_MOST)
        if len(parts) > COLONS_MOST:
            raise ValueError(f"{text[:100]!r} is no address")
        yield from (":".join(parts[:count]) for count in range(1, len(parts) + 1))


def _names_of(event: Event) -> Iterator[str]:
    if event.kind not in KINDS:
        return chain.from_iterable(map(strings_of, event.fields.values()))
    return chain(topics_of(event), brokers_of(event), clusters_of(event))
