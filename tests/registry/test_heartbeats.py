"""Which heartbeats are logged, and as what."""

from collections.abc import Iterator
from typing import Any

import pytest

from mqnamesrv.store import EmbeddedStore
from registry.registration.cache import RegistrationCache
from registry.registration.heartbeat import log_heartbeat, renew_lease
from registry.registration.register import register
from registry.store.connect import connect
from rocketmq_remoting.codes import RequestCode
from tests.registry.brokers import address, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

REGISTRATION, HEARTBEAT = int(RequestCode.REGISTER_BROKER), int(RequestCode.BROKER_HEARTBEAT)


@pytest.fixture
def redis(each_store: EmbeddedStore) -> Iterator[Store]:
    with connect(each_store.url) as client:
        yield client


def kept(ns: Namespace) -> list[dict[str, str]]:
    return [fields for _, fields in ns.store.xrange(ns.keys.heartbeats)]


def entry(
    name: str = "b1", number: int = 0, *, at: str | None = None, code: int = HEARTBEAT
) -> dict[str, str]:
    return {
        "cluster": "c1",
        "broker": name,
        "id": str(number),
        "addr": at or address(name, number),
        "code": str(code),
    }


def accepted(ns: Namespace, name: str = "b1", event_code: int | None = HEARTBEAT) -> Any:
    return ns.run(renew_lease(ns.keys, "c1", address(name), origin(), event_code=event_code))


def registered(ns: Namespace, event_code: int | None = REGISTRATION, **said: Any) -> Any:
    return ns.run(register(ns.keys, registration(**said), origin(), event_code=event_code))


def test_heartbeats_are_logged_only_on_request(ns: Namespace) -> None:
    registered(ns, None)
    assert accepted(ns, event_code=None).renewal is not None
    assert not ns.store.exists(ns.keys.heartbeats)


def test_each_heartbeat_is_an_entry(ns: Namespace) -> None:
    ns.register()
    found = [accepted(ns) for _ in range(2)]
    assert kept(ns) == [entry(), entry()]
    assert [one.renewal for one in found] == [None, None]  # what answers without the store keeps nothing


def test_each_registration_is_an_entry_whether_it_changes_anything_or_not(ns: Namespace) -> None:
    answers = [registered(ns, version=version) for version in (1, 1, 2)]
    assert kept(ns) == [entry(code=REGISTRATION)] * 3
    assert [one.renewal for one in answers] == [None] * 3


def test_a_registration_that_the_memory_of_renewals_answers_is_an_entry(ns: Namespace) -> None:
    registration_cache = RegistrationCache(lambda: 50.0)
    for _ in range(3):
        ns.run(
            register(
                ns.keys,
                registration(),
                origin(),
                registration_cache=registration_cache,
                event_code=REGISTRATION,
            )
        )
    assert kept(ns) == [entry(code=REGISTRATION)] * 3


def test_a_heartbeat_that_reinstates_a_member_is_an_entry(ns: Namespace) -> None:
    ns.register()
    ns.lapse()
    accepted(ns)
    assert kept(ns) == [entry()]


def test_a_heartbeat_of_an_unknown_broker_is_no_entry(ns: Namespace) -> None:
    assert accepted(ns).version is None
    assert kept(ns) == []


def test_a_refused_registration_is_no_heartbeat(ns: Namespace) -> None:
    ns.register(state=2)
    ns.register("b2")
    assert registered(ns, at=address("b2"), state=1).refused
    assert kept(ns) == []


def test_a_member_of_several_names_has_an_entry_for_each(ns: Namespace) -> None:
    at = address("b1")
    ns.register()
    ns.register("b0", 3, at=at)
    ns.register("b:9", -1, at=at)
    accepted(ns)
    assert kept(ns) == [entry("b:9", -1, at=at), entry("b1", at=at), entry("b0", 3, at=at)]


def test_nothing_is_kept_of_a_member_that_went_meanwhile(ns: Namespace) -> None:
    ns.run(log_heartbeat(ns.keys, "c1", address("b1"), HEARTBEAT))
    assert not ns.store.exists(ns.keys.heartbeats)
