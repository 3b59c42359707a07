"""Renewals of the last moment: when the store need not be asked, and when it must."""

from typing import Any

import pytest
import redis as redis_py

from registry.drivers import run
from registry.keys import Keys, member_key
from registry.plans import Plan, ScriptItem
from registry.registration.cache import RegistrationCache
from registry.registration.register import Registered, register
from registry.registration.renewals import BYTES_MOST, COST, FRACTION, Renewals
from tests.registry.brokers import address, origin, registration

KEYS = Keys()
TIMEOUT_S = 120.0
ITEM = ScriptItem("renew_registration", (), (), ("m", "signature", "", "w1/1", "0"))


class Clock:
    """Stands still until it is moved."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def renewals(clock: Clock) -> Renewals:
    return Renewals(clock)


def reply() -> list[Any]:
    return ["renewed", str(int(TIMEOUT_S * 1000)), ["", ""], ["0"]]


def first(plan: Plan[Any]) -> Any:
    """What a plan asks for, or its result when it asks for nothing."""
    try:
        return next(plan)
    except StopIteration as done:
        return done.value


def after(plan: Plan[Any], given: object) -> Any:
    assert isinstance(next(plan), ScriptItem)
    with pytest.raises(StopIteration) as done:
        plan.send(given)
    return done.value.value


def test_the_same_request_within_a_thousandth_of_the_timeout_needs_no_store(
    clock: Clock, renewals: Renewals
) -> None:
    assert after(renewals.ask(ITEM), reply()) == reply()
    clock.now += TIMEOUT_S / FRACTION * 0.99
    assert first(renewals.ask(ITEM)) == reply()
    clock.now += TIMEOUT_S / FRACTION * 0.02
    assert first(renewals.ask(ITEM)) is ITEM


def test_the_time_counts_from_the_asking(clock: Clock, renewals: Renewals) -> None:
    plan = renewals.ask(ITEM)
    next(plan)
    clock.now += 1.0
    with pytest.raises(StopIteration):
        plan.send(reply())
    assert first(renewals.ask(ITEM)) is ITEM


def test_another_request_of_the_same_member_asks_the_store(renewals: Renewals) -> None:
    after(renewals.ask(ITEM), reply())
    other = ScriptItem("renew_registration", (), (), ("m", "another", "", "w1/1", "0"))
    assert first(renewals.ask(other)) is other


@pytest.mark.parametrize("refusal", ["unknown", "lapsed", "differs"])
def test_a_refusal_is_not_cached(renewals: Renewals, refusal: str) -> None:
    assert after(renewals.ask(ITEM), [refusal]) == [refusal]
    assert first(renewals.ask(ITEM)) is ITEM


def test_a_change_makes_all_be_asked_again(renewals: Renewals) -> None:
    after(renewals.ask(ITEM), reply())
    renewals.invalidate()
    assert first(renewals.ask(ITEM)) is ITEM


def test_a_change_while_the_store_is_asked(renewals: Renewals) -> None:
    plan = renewals.ask(ITEM)
    next(plan)
    renewals.invalidate()
    with pytest.raises(StopIteration):
        plan.send(reply())
    assert first(renewals.ask(ITEM)) is ITEM


def test_the_one_used_longest_ago_is_evicted(renewals: Renewals) -> None:
    items = [
        ScriptItem("renew_registration", (), (), (f"m{number}", "", "", "", ""))
        for number in range(BYTES_MOST // COST + 1)
    ]
    for item in items:
        after(renewals.ask(item), reply())
        assert first(renewals.ask(items[0])) == reply()
    assert first(renewals.ask(items[1])) is items[1]
    assert first(renewals.ask(items[-1])) == reply()


def test_on_a_store(redis: redis_py.Redis, clock: Clock) -> None:
    registration_cache = RegistrationCache(clock)
    member = member_key("c1", address("b1"))

    def lease() -> float:
        return redis.zscore(KEYS.leases, member) or 0.0

    def registered() -> Registered:
        return run(register(KEYS, registration("b1"), origin(), registration_cache=registration_cache), redis)

    registered()
    first_reply, renewed = registered(), lease()
    redis.zadd(KEYS.leases, {member: renewed - 5})
    assert registered() == first_reply
    assert lease() == renewed - 5
    clock.now += 1
    assert registered() == first_reply
    assert lease() >= renewed
