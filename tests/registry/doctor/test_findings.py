"""Findings of a real store, and their counts as metrics read them."""

import pytest
from msgspec.structs import replace

from registry.clock import LATE_MS
from registry.doctor.findings import COUNTED_MS, FINDINGS, Finding, count, counted, examine
from registry.drains import Drain, drain
from registry.expiry.worker_lease import end_lease, tick
from registry.growth.limits import DEFAULT_LIMITS
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace


def findings(ns: Namespace, **limits: int) -> dict[str, Finding]:
    found = ns.run(examine(ns.keys, replace(DEFAULT_LIMITS, **limits))).findings
    return {finding.check: finding for finding in found}


def test_a_namespace_without_anything(ns: Namespace) -> None:
    assert findings(ns) == {}


def test_what_its_tables_show(ns: Namespace) -> None:
    ns.register("b1", topics=("T", "U"))
    ns.register("b2", number=1, topics=("T", "U"))
    ns.run(drain(ns.keys, "b1", Drain("alice", "upgrade"), origin()))
    found = findings(ns, max_topics=1)
    assert found.keys() == {"broker-drained", "broker-without-master", "limits-near"}
    assert found["broker-without-master"].subjects == ("b2",)
    assert (found["broker-without-master"].severity, found["broker-drained"].severity) == ("error", "warning")


def test_counts_are_kept_for_a_while(ns: Namespace) -> None:
    assert ns.run(counted(ns.keys)) == {}
    ns.register("b1", number=1, topics=("T", "U"))
    ns.register("b2", number=1, topics=("T", "U"))
    ns.run(count(ns.keys, DEFAULT_LIMITS))
    assert ns.run(counted(ns.keys)) == dict.fromkeys(FINDINGS, 0) | {"broker-without-master": 2}
    assert COUNTED_MS - 60_000 < ns.store.pttl(ns.keys.doctor) <= COUNTED_MS


@pytest.mark.parametrize("text", ["", "[]", '{"broker-drained": "x"}', "\udcff"])
def test_damaged_counts_are_none(ns: Namespace, text: str) -> None:
    ns.store.set(ns.keys.doctor, text.encode(errors="surrogateescape"))
    assert ns.run(counted(ns.keys)) == {}
    ns.store.set(ns.keys.doctor, '{"broker-drained": 1, "other": 2}')
    assert ns.run(counted(ns.keys)) == {"broker-drained": 1}


def test_names_of_brokers_are_quoted_in_commands(ns: Namespace) -> None:
    assert _wiped(ns, "$(reboot)").command == "mqns permissions add '$(reboot)'"
    assert _wiped(ns, "-o").command == "mqns permissions add -- -o"


def _wiped(ns: Namespace, name: str) -> Finding:
    text = f'{{"at_ms": 1, "clusters": {{}}, "wiped": ["{name}"]}}'
    ns.store.set(ns.keys.topic_counts, text)
    return findings(ns)["broker-wiped"]


def test_a_worker_that_ticks_no_more(ns: Namespace) -> None:
    """It is named until it ticks again, or ends; another one ticks meanwhile."""
    for worker in ("h.1.a", "h.2.b"):
        ns.run(tick(ns.keys, worker, origin()))
    assert findings(ns) == {}
    ns.store.zincrby(ns.keys.workers, -LATE_MS - 1, "h.1.a")
    found = findings(ns)["worker-silent"]
    assert (found.subjects, found.severity) == (("h.1.a",), "warning")
    assert "h.1.a (5 s ago)" in found.what
    ns.run(end_lease(ns.keys, "h.1.a"))
    assert findings(ns) == {}
