"""The fold follows what the entries tell, and refuses what does not follow from the entries before."""

from typing import Any

import pytest
from msgspec.structs import replace

from registry.fold import Event, FoldError, Tables, answered, fold
from tests.registry.brokers import address, mapping_info
from tests.registry.namespace import Namespace


@pytest.fixture
def told(ns: Namespace) -> list[Event]:
    """A short life of two brokers."""
    ns.register(filters=("f:1",), mappings=[mapping_info("T1")])
    ns.register("b1", 1)
    ns.register(
        topics={"T1": "4,4,6,0"}, version=2, zone="z", ha="h:1", mappings=[mapping_info("T1", epoch=2)]
    )
    ns.register("b2")
    ns.unregister()
    return ns.entries()


def test_a_fold_goes_on_from_any_place(told: list[Event]) -> None:
    whole = fold(Tables(), told)
    for cut in range(len(told)):
        assert fold(fold(Tables(), told[:cut]), told[cut:]) == whole
    assert whole.seq == len(told)


def test_a_removed_broker_keeps_its_topics_under_its_epoch(ns: Namespace, told: list[Event]) -> None:
    ns.unregister("b1", 1)
    after = fold(Tables(), ns.entries())
    assert set(after.living()) == {"b2"}
    assert set(after.brokers["b1"].topics) == {"T1", "T2"}
    ns.register(topics=("N1", "N2"))
    assert set(fold(Tables(), ns.entries()).brokers["b1"].topics) == {"N1", "N2"}


def without(told: list[Event], number: int) -> list[Event]:
    return told[:number] + told[number + 1 :]


@pytest.mark.parametrize("number", range(9))
def test_a_hole_is_noticed(told: list[Event], number: int) -> None:
    with pytest.raises(FoldError, match="follows"):
        fold(Tables(), without(told, number))


@pytest.mark.parametrize("number", range(1, 9))
def test_a_repeated_entry_is_noticed(told: list[Event], number: int) -> None:
    with pytest.raises(FoldError, match="follows"):
        fold(Tables(), told[: number + 1] + told[number:])


def first(told: list[Event], kind: str, cause: str, changed: dict[str, str]) -> int:
    """Where the first entry of a kind is that says something of what shall be changed."""
    needed = {name for name in changed if name.endswith("_before")}
    return next(
        i
        for i, event in enumerate(told)
        if event.kind == kind and cause in event.cause and needed <= set(event.fields)
    )


@pytest.mark.parametrize(
    ("kind", "cause", "changed"),
    [
        pytest.param("broker_registered", "join", {"addrs": '{"0":"x"}'}, id="other addresses"),
        pytest.param("broker_registered", "join", {"group_cluster": "c9"}, id="another group"),
        pytest.param("broker_registered", "join", {"id": "0"}, id="an id that is held"),
        pytest.param("broker_registered", "join", {"epoch": "9"}, id="an epoch while members are there"),
        pytest.param("broker_updated", "", {"zone_before": "y"}, id="another zone"),
        pytest.param("broker_updated", "", {"ha_before": "y"}, id="another HA address"),
        pytest.param("broker_updated", "", {"dv_before": "0:0:0"}, id="another version"),
        pytest.param("broker_updated", "", {"filters_before": '["g:1"]'}, id="other filter servers"),
        pytest.param("broker_updated", "", {"epoch": "9"}, id="another epoch"),
        pytest.param("broker_updated", "", {"addr": "x"}, id="an unknown member"),
        pytest.param("broker_updated", "", {"broker": "x"}, id="an unknown broker"),
        pytest.param("broker_removed", "", {"dv": "0:0:0"}, id="a removal with another version"),
        pytest.param("broker_removed", "", {"id": "1"}, id="a removal from another place"),
        pytest.param("topics_changed", "", {"rows": '[["b1","1,1,6,0","",["T1"]]]'}, id="other queue data"),
        pytest.param("topics_changed", "", {"count": "7"}, id="another count"),
        pytest.param("topics_changed", "", {"epoch": "7"}, id="topics of another epoch"),
        pytest.param("mappings_changed", "", {"rows": '[["b1","T1",{},null]]'}, id="other infos"),
        pytest.param("broker_removed", "", {"kind": "surprise"}, id="an unknown kind"),
        pytest.param("broker_removed", "", {"inc": "7"}, id="another incarnation"),
    ],
)
def test_what_does_not_follow_is_refused(
    told: list[Event], kind: str, cause: str, changed: dict[str, str]
) -> None:
    number = first(told, kind, cause, changed)
    spoilt = replace(told[number], fields={**told[number].fields, **changed})
    with pytest.raises(FoldError, match=spoilt.id):
        fold(Tables(), [*told[:number], spoilt])


def entry(seq: int, kind: str, **fields: Any) -> Event:
    return Event(f"{seq}-0", {"kind": kind, "cause": "", "inc": "1", "seq": str(seq), **fields})


def test_a_member_was_gone_when_its_lease_ended_not_when_that_was_recorded(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1)
    ns.register("b2")
    at_ms, told = ns.now_ms(), ns.entries()
    before = fold(Tables(), told)
    ns.lapse("b1", 1, ago_ms=10_000)
    ns.expire()
    ns.unregister("b2")
    later = ns.entries()[len(told) :]
    seen = answered(before, later, at_ms)
    assert {name: set(broker.addrs) for name, broker in seen.living().items()} == {"b1": {0}, "b2": {0}}
    long_before = answered(before, later, at_ms - 20_000)
    assert set(long_before.brokers["b1"].addrs) == {0, 1}


def test_a_member_that_registered_anew_meanwhile_is_judged_by_its_first_removal(ns: Namespace) -> None:
    ns.register()
    before, at_ms = fold(Tables(), ns.entries()), ns.now_ms()
    later = [
        entry(1, "broker_registered", broker="b1", id="0"),
        entry(2, "broker_removed", broker="b1", id="0", effective_ms=str(at_ms - 1)),
    ]
    assert answered(before, later, at_ms) == before
    assert answered(before, later[1:], at_ms).living() == {}


def test_drains_and_checkpoints_and_unknown_fields() -> None:
    started = entry(1, "stream_started", cause="empty_store", later="x")
    drained = entry(2, "drain_changed", broker="b1", after='{"owner":"a"}')
    ended = entry(3, "drain_changed", broker="b1", before='{"owner":"a"}')
    restated = entry(4, "checkpoint", scope="begin")
    after = fold(Tables(), [started, drained])
    assert after.drains == {"b1": '{"owner":"a"}'}
    assert fold(after, [ended, restated]).drains == {}


def test_a_stream_that_was_lost_goes_on_with_the_tables(told: list[Event]) -> None:
    whole = fold(Tables(), told)
    after = fold(whole, [entry(1, "stream_started", cause="stream_lost")])
    assert (after.brokers, after.seq, after.inc) == (whole.brokers, 1, "1")
    assert fold(whole, [entry(1, "stream_started", cause="empty_store")]) == Tables("1", 1)


def test_an_address_under_two_names_is_one_member(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=address("b1"), ha="h:2", version=3)
    after = fold(Tables(), ns.entries())
    assert after.members[f"c1:{address('b1')}"].ha == "h:2"
    ns.unregister("b2", at=address("b1"))
    assert fold(Tables(), ns.entries()).members == after.members
