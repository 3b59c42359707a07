"""Which beats go to the stream of heartbeats, and as what."""

from collections.abc import Iterator
from typing import Any

import pytest

from launcher.store import EmbeddedStore
from registry.beats import beat
from registry.heartbeats import heard
from registry.registrar import Registrar
from registry.registration import register
from registry.store import connect
from remoting.codes import RequestCode
from tests.registry.brokers import act, address, registration
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

REGISTRATION, BEAT = int(RequestCode.REGISTER_BROKER), int(RequestCode.BROKER_HEARTBEAT)


@pytest.fixture
def redis(each_store: EmbeddedStore) -> Iterator[Store]:
    with connect(each_store.url) as client:
        yield client


def kept(ns: Namespace) -> list[dict[str, str]]:
    return [fields for _, fields in ns.store.xrange(ns.keys.heartbeats)]


def entry(name: str = "b1", number: int = 0, *, at: str | None = None, code: int = BEAT) -> dict[str, str]:
    return {
        "cluster": "c1",
        "broker": name,
        "id": str(number),
        "addr": at or address(name, number),
        "code": str(code),
    }


def beaten(ns: Namespace, name: str = "b1", told_as: int | None = BEAT) -> Any:
    return ns.run(beat(ns.keys, "c1", address(name), act(), told_as=told_as))


def registered(ns: Namespace, told_as: int | None = REGISTRATION, **said: Any) -> Any:
    return ns.run(register(ns.keys, registration(**said), act(), told_as=told_as))


def test_beats_are_not_kept_unless_asked_for(ns: Namespace) -> None:
    registered(ns, None)
    assert beaten(ns, told_as=None).again is not None
    assert not ns.store.exists(ns.keys.heartbeats)


def test_a_beat_is_an_entry_and_so_is_the_next(ns: Namespace) -> None:
    ns.register()
    found = [beaten(ns) for _ in range(2)]
    assert kept(ns) == [entry(), entry()]
    assert [one.again for one in found] == [None, None]  # what answers without the store keeps nothing


def test_each_registration_is_an_entry_whether_it_changes_anything_or_not(ns: Namespace) -> None:
    answers = [registered(ns, version=version) for version in (1, 1, 2)]
    assert kept(ns) == [entry(code=REGISTRATION)] * 3
    assert [one.again for one in answers] == [None] * 3


def test_a_registration_that_the_memory_of_renewals_answers_is_an_entry(ns: Namespace) -> None:
    registrar = Registrar(lambda: 50.0)
    for _ in range(3):
        ns.run(register(ns.keys, registration(), act(), registrar=registrar, told_as=REGISTRATION))
    assert kept(ns) == [entry(code=REGISTRATION)] * 3


def test_a_beat_that_brings_a_member_back_is_an_entry(ns: Namespace) -> None:
    ns.register()
    ns.lapse()
    beaten(ns)
    assert kept(ns) == [entry()]


def test_an_unknown_broker_beats_in_vain(ns: Namespace) -> None:
    assert beaten(ns).version is None
    assert kept(ns) == []


def test_a_refused_registration_is_no_beat(ns: Namespace) -> None:
    ns.register(state=2)
    ns.register("b2")
    assert registered(ns, at=address("b2"), state=1).refused
    assert kept(ns) == []


def test_a_member_of_several_names_has_an_entry_for_each(ns: Namespace) -> None:
    at = address("b1")
    ns.register()
    ns.register("b0", 3, at=at)
    ns.register("b:9", -1, at=at)
    beaten(ns)
    assert kept(ns) == [entry("b:9", -1, at=at), entry("b1", at=at), entry("b0", 3, at=at)]


def test_nothing_is_kept_of_a_member_that_went_meanwhile(ns: Namespace) -> None:
    ns.run(heard(ns.keys, "c1", address("b1"), BEAT))
    assert not ns.store.exists(ns.keys.heartbeats)
