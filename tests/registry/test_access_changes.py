"""Entries `access_changed` of ends and of rules: one, however many processes report the same."""

import json

import pytest

from registry.access_changes import DAY_MS, report_end, report_rules
from registry.events.entry import Event
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

OPEN, SIGNED = '{"accessRead":"open"}', '{"accessRead":"signed"}'


def entries(ns: Namespace) -> list[Event]:
    return [event for event in ns.new_entries() if event.kind == "access_changed"]


def ended(ns: Namespace, credential: str, end_ms: int) -> str:
    return ns.run(report_end(ns.keys, "client", credential, end_ms, origin()))


def rules(ns: Namespace, state: str) -> str:
    return ns.run(report_rules(ns.keys, state, lambda before: (("changes", before),), origin()))


def test_an_end_is_reported_once(ns: Namespace) -> None:
    end_ms = ns.now_ms() - 5
    assert ended(ns, "acl:K#old", end_ms)
    assert ended(ns, "acl:K#old", end_ms) == ""
    (event,) = entries(ns)
    assert event.is_audited
    assert {name: event.get(name) for name in ("cause", "principal", "credential", "expires_ms")} == {
        **{"cause": "expired", "principal": "client", "credential": "acl:K#old"},
        "expires_ms": str(end_ms),
    }
    assert ended(ns, "acl:K#old", end_ms + 1)
    assert ended(ns, "token:abcd1234", end_ms)


def test_reports_of_ends_go_after_two_days(ns: Namespace) -> None:
    now = ns.now_ms()
    for name, end_ms in (("old", now - 2 * DAY_MS - 1), ("damaged", "x"), ("of late", now - DAY_MS)):
        ns.store.hset(ns.keys.access_reported, f"end:{name}", end_ms)
    ns.store.hset(ns.keys.access_reported, "rules", OPEN)
    ended(ns, "token:abcd1234", now)
    assert set(ns.store.hkeys(ns.keys.access_reported)) == {"rules", "end:of late", "end:token:abcd1234"}


def test_rules_are_reported_where_they_are_others_than_before(ns: Namespace) -> None:
    assert rules(ns, OPEN) == ""
    assert rules(ns, OPEN) == ""
    assert entries(ns) == []
    assert rules(ns, SIGNED)
    assert rules(ns, SIGNED) == ""
    (event,) = entries(ns)
    assert (event.cause, json.loads(event.get("changes"))) == ("rules", {"accessRead": "open"})


@pytest.mark.parametrize("key", ["access_tokens", "access_revoked"])
def test_they_change_no_other_table(ns: Namespace, key: str) -> None:
    ns.store.hset(getattr(ns.keys, key), "x", "y")
    rules(ns, OPEN)
    rules(ns, SIGNED)
    ended(ns, "token:abcd1234", ns.now_ms())
    assert ns.store.hgetall(getattr(ns.keys, key)) == {"x": "y"}
