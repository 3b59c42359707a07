"""Checkpoint rounds in few words: in the smallest slices, stopped anywhere, and read as a newcomer reads them."""

from collections.abc import Iterator
from contextlib import contextmanager

from registry.fold import UNKNOWN, Event, Tables, fold
from registry.keys import Keys
from registry.plans import Plan
from registry.rounds import Carried, Cause, ask, carry_on
from tests.registry.brokers import act
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

SMALLEST = 1  # for registry.rounds.SLICE: a broker, or a page, a script


@contextmanager
def paged_hashes(store: Store) -> Iterator[None]:
    """Hashes come in pages however small they are, as large ones do."""
    before = store.config_get("hash-max-listpack-entries")
    store.config_set("hash-max-listpack-entries", 0)
    yield
    store.config_set("hash-max-listpack-entries", before["hash-max-listpack-entries"])


def slices(keys: Keys, most: int = 10_000) -> Plan[Carried]:
    """As the job does it."""
    return carry_on(keys, act(), slices=most, hidden=("secret",))


def asked(ns: Namespace, cause: Cause = "request") -> str:
    """Ask for a round; the entry before it."""
    return ns.run(ask(ns.keys, cause, act()))


def restated(ns: Namespace, cause: Cause = "request") -> list[Event]:
    """A whole round, and its entries."""
    ns.new_entries()
    asked(ns, cause)
    assert ns.run(slices(ns.keys)).ended == 1
    return ns.new_entries()


def scopes(told: list[Event]) -> list[str]:
    """Of checkpoint entries; of others their kind."""
    return [event.fields.get("scope", event.kind) for event in told]


def newcomers(told: list[Event]) -> Tables:
    """What who knows nothing makes of these entries."""
    return fold(UNKNOWN, told)
