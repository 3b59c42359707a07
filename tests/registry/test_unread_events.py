"""Trimming of a stream in which another hand wrote: what cannot be read is skipped, named, and bounds nothing."""

import pytest

from registry.events.consumers import UNREAD_NAMED
from registry.events.trim import AUDITOR, Trimmed, trim
from registry.kv import put
from registry.plans import as_json
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

PLENTY = 1 << 30
BAD_REPORTS = [
    "nojson",
    "[]",
    '{"id":"1-0","seq":"5"}',
    '{"id":"","hold":true}',
    '{"id":"x-1","hold":true}',
    '{"id":"18446744073709551616-0","hold":true}',
    b'{"id":"\xff"}',
]


@pytest.fixture(autouse=True)
def cut(ns: Namespace) -> None:
    """These streams are not the name server's alone."""
    ns.rewritten = True


def trimmed(ns: Namespace, max_bytes: int = PLENTY) -> Trimmed:
    return ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=max_bytes))


def write(ns: Namespace, seq: str, inc: str = "1") -> str:
    return str(ns.store.xadd(ns.keys.events, {"v": "1", "kind": "foo", "seq": seq, "inc": inc}))


@pytest.mark.parametrize(("seq", "inc"), [("abc", "1"), ("", "1"), ("5", "x"), ("9" * 30, "1"), ("²", "1")])
def test_an_entry_without_a_number_is_named_once_and_what_follows_is_copied(
    ns: Namespace, seq: str, inc: str
) -> None:
    written = write(ns, seq, inc)
    ns.run(put(ns.keys, "n", "k", "v", origin()))
    done = trimmed(ns)
    assert (done.audited, done.unread_entries) == (1, (written,))
    assert trimmed(ns).unread_entries == ()


def test_an_entry_without_a_number_at_the_start_is_not_taken_for_the_first(ns: Namespace) -> None:
    write(ns, "abc")
    ns.register("b1", mappings=())
    last = ns.entries()[-1]
    report = {"id": str(last.id), "seq": last.sequence, "at_ms": ns.now_ms(), "hold": True}
    ns.store.hset(ns.keys.events_consumers, "pipeline", as_json(report))
    assert trimmed(ns).lagging == 0


def test_reports_that_cannot_be_read_hold_nothing_back(ns: Namespace) -> None:
    for number in range(500):
        write(ns, str(number + 1))
    ns.store.hset(
        ns.keys.events_consumers, mapping={f"c{place}": text for place, text in enumerate(BAD_REPORTS)}
    )
    done = trimmed(ns, int(ns.store.memory_usage(ns.keys.events)) // 2)
    assert sorted(done.unread_consumers) == [f"c{place}" for place in range(len(BAD_REPORTS))]
    assert done.capped >= 200
    ns.store.delete(ns.keys.events)


@pytest.mark.parametrize("report", BAD_REPORTS)
def test_our_own_report_is_made_again_from_what_was_copied(ns: Namespace, report: str | bytes) -> None:
    ns.run(put(ns.keys, "n", "k", "1", origin()))
    assert trimmed(ns).audited == 1
    ns.store.hset(ns.keys.events_consumers, AUDITOR, report)
    ns.run(put(ns.keys, "n", "k", "2", origin()))
    done = trimmed(ns)
    assert (done.audited, done.unread_consumers) == (1, {})


def test_only_some_of_many_consumers_are_named(ns: Namespace) -> None:
    ns.store.hset(ns.keys.events_consumers, mapping={f"c{place}": "nojson" for place in range(30)})
    assert len(trimmed(ns).unread_consumers) == UNREAD_NAMED
