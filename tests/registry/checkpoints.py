"""Checkpoint rounds in few words: in the smallest slices, stopped anywhere, and read as a newcomer reads them."""

from collections.abc import Iterator
from contextlib import contextmanager

from registry.events.checkpoint import Cause, Progress, checkpoint, request_round
from registry.events.entry import Event
from registry.events.replay import UNKNOWN, Tables, replay
from registry.keys import Keys
from registry.plans import Plan
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

SMALLEST = 1  # for registry.events.checkpoint.SLICE: a broker, or a page, a script


@contextmanager
def paged_hashes(store: Store) -> Iterator[None]:
    """Hashes come in pages however small they are, as large ones do."""
    before = store.config_get("hash-max-listpack-entries")
    store.config_set("hash-max-listpack-entries", 0)
    yield
    store.config_set("hash-max-listpack-entries", before["hash-max-listpack-entries"])


def slices(keys: Keys, most: int = 10_000) -> Plan[Progress]:
    """As the job does it."""
    return checkpoint(keys, origin(), slices=most)


def asked(ns: Namespace, cause: Cause = "request") -> str:
    """Ask for a round; the entry before it."""
    return ns.run(request_round(ns.keys, cause, origin()))


def a_round(ns: Namespace, cause: Cause = "request") -> list[Event]:
    """A whole round, and its entries."""
    ns.new_entries()
    asked(ns, cause)
    assert ns.run(slices(ns.keys)).ended == 1
    return ns.new_entries()


def scopes(events: list[Event]) -> list[str]:
    """Of checkpoint entries; of others their kind."""
    return [event.fields.get("scope", event.kind) for event in events]


def newcomers(events: list[Event]) -> Tables:
    """Return the tables of a reader that begins with these entries."""
    return replay(UNKNOWN, events)
