"""When credentials were used last, in the store."""

import pytest

from registry import access_uses
from registry.access_uses import note_uses, uses
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

MINUTE_MS = 60_000


def noted(ns: Namespace, **ages_ms: int) -> dict[str, int]:
    """Note uses so long ago, and return all with their minutes."""
    ns.run(note_uses(ns.keys, ages_ms, origin()))
    return ns.run(uses(ns.keys))


def test_a_use_is_noted_by_the_minute_and_never_an_earlier_one_after_it(ns: Namespace) -> None:
    assert noted(ns) == {}
    now = ns.now_ms() // MINUTE_MS
    first = noted(ns, key=10 * MINUTE_MS, token=0)
    assert first["key"] - now in (-10, -9)  # the minute may just have ended
    assert first["token"] - now in (0, 1)
    assert noted(ns, key=20 * MINUTE_MS) == first
    assert noted(ns, key=5 * MINUTE_MS)["key"] > first["key"]


@pytest.mark.parametrize("text", ["x", "nan", "inf", "99999999999"])
def test_what_was_damaged_or_is_of_a_later_time_gives_way(ns: Namespace, text: str) -> None:
    ns.store.hset(ns.keys.access_used, "key", text)
    assert abs(noted(ns, key=0)["key"] - ns.now_ms() // MINUTE_MS) <= 1


def test_what_is_no_minute_is_left_out(ns: Namespace) -> None:
    ns.store.hset(ns.keys.access_used, "damaged", "x")
    assert list(noted(ns, key=0)) == ["key"]


def test_a_key_of_another_type_is_deleted(ns: Namespace) -> None:
    ns.store.set(ns.keys.access_used, "x")
    assert list(noted(ns, key=0)) == ["key"]


def test_of_too_many_those_go_that_were_used_longest_ago(
    ns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_uses, "CREDENTIALS_MOST", 1_000)
    monkeypatch.setattr(access_uses, "AT_ONCE", 600)
    many = {f"key{number}": number * MINUTE_MS for number in range(1_001)}
    assert sorted(noted(ns, **many), key=lambda name: int(name[3:])) == list(many)[:900]
