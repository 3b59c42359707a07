"""What an item expects its script need not say; whatever is not as expected is said, of each item."""

from typing import Any

import pytest

from registry.keys import member_key
from registry.kv import put
from registry.ownership import UNGUARDED, Claimant
from registry.plans import Expected, ScriptItem, ask, joined, replies_to
from registry.registration.order_tables import exceptions_with_order_table
from registry.registration.renewals import Renewal
from tests.registry.brokers import address, origin
from tests.registry.namespace import Namespace

MEMBER = member_key("c1", address("b1"))
HOST = Claimant("host:127.1.1.1", guard=True)
PRINCIPAL = Claimant("principal:p1", guard=True, proved=True)
WAYS = ["heartbeat", "of a host", "of a principal", "registration", "of a slave"]


@pytest.fixture(params=WAYS)
def renewal(request: pytest.FixtureRequest, ns: Namespace) -> Renewal:
    """What renewed the lease of b1's member, as it is asked again."""
    by = {"of a host": HOST, "of a principal": PRINCIPAL}.get(request.param, UNGUARDED)
    ns.register(by=by)
    for stamp in range(2):
        done = ns.register("b1", int(request.param == "of a slave"), stamp=stamp, by=by)
    found = done.renewal if request.param in WAYS[3:] else ns.heartbeat(by=by).renewal
    assert found is not None
    return found


def said(ns: Namespace, item: ScriptItem) -> Any:
    """What the script returns, without the order table."""
    returned = ns.run(ask(joined((item,))))
    return returned[1:] if item.name == "renew_registration" else returned


def member_of(renewal: Renewal) -> str:
    return str(renewal.item.args[0])


def test_what_is_expected_is_not_said(ns: Namespace, renewal: Renewal) -> None:
    member = member_of(renewal)
    ns.store.zincrby(ns.keys.leases, -1000, member)
    lease = ns.store.zscore(ns.keys.leases, member)
    assert said(ns, renewal.item) == []
    assert ns.store.zscore(ns.keys.leases, member) > lease
    assert ns.run(ask(renewal.item)) is renewal.reply


@pytest.mark.parametrize(("field", "value", "place"), [("timeout", "100000", 1), ("dv", "0,5,7", 2)])
def test_another_timeout_or_version_is_said(
    ns: Namespace, renewal: Renewal, field: str, value: str, place: int
) -> None:
    ns.rewritten = True
    ns.store.hset(ns.keys.member(member_of(renewal)), field, value)
    reply = ns.run(ask(renewal.item))
    if field == "dv" and renewal.item.name == "renew_registration":
        assert reply == ["differs"]
    else:
        assert reply == [*renewal.reply[:place], value, *renewal.reply[place + 1 :]]


def test_of_many_items_those_are_said_that_are_not_as_expected(ns: Namespace) -> None:
    items = []
    for name in ("b1", "b2", "b3", "b4"):
        ns.register(name)
        renewal = ns.heartbeat(name).renewal
        assert renewal is not None
        items.append(renewal.item)
    ns.unregister("b2")
    ns.lapse("b4")
    returned = ns.run(ask(joined(items)))
    assert returned == [2, ["unknown"], 4, ["lapsed"]]
    replies = replies_to(items, returned)
    assert [reply[0] for reply in replies] == ["renewed", "unknown", "renewed", "lapsed"]


def test_another_master_is_said_to_a_slave(ns: Namespace) -> None:
    ns.register(ha="1.1.1.1:10912")
    for stamp in range(2):
        done = ns.register("b1", 1, stamp=stamp)
    assert done.renewal is not None
    ns.rewritten = True
    ns.store.hset(ns.keys.member(MEMBER), "ha", "1.1.1.1:9")
    assert ns.run(ask(done.renewal.item))[2] == [address("b1"), "1.1.1.1:9"]


def test_another_order_table_is_said(ns: Namespace) -> None:
    for stamp in range(2):
        done = ns.register(stamp=stamp)
    assert done.renewal is not None
    assert done.renewal.reply[-1] == ["0"]
    ns.run(put(ns.keys, "ORDER_TOPIC_CONFIG", "T1", "b1:4", origin()))
    assert ns.run(ask(done.renewal.item))[-1] == ["1", "T1", "b1:4"]


def test_an_order_table_that_is_as_before_leaves_expected_replies_as_they_are() -> None:
    tables = [["1", "T", "b:4"], ["1", "T", "b:4"], ["0"]]
    expected = [["renewed", "120000", ["", ""], table] for table in tables]
    items = [ScriptItem("renew_registration", (), (), (), expected=Expected("", reply)) for reply in expected]
    replies = exceptions_with_order_table(items, [["1", "T", "b:4"]])
    assert replies[0] is expected[0]
    assert replies[1] is expected[1]
    assert replies[2] == ["renewed", "120000", ["", ""], ["1", "T", "b:4"]]
    assert expected[2][-1] == ["0"]
