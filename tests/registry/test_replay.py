"""The replay follows the entries, and refuses an entry that does not follow from those before."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from registry.events.entry import Event, EventId
from registry.events.replay import ReplayError, Tables, replay
from tests.races.history import visible_at
from tests.registry.brokers import address, mapping_info
from tests.registry.checkpoints import a_round
from tests.registry.namespace import Namespace


@pytest.fixture
def events(ns: Namespace) -> list[Event]:
    """A short life of two brokers."""
    ns.register(filters=("f:1",), mappings=[mapping_info("T1")])
    ns.register("b1", 1)
    ns.register(
        topics={"T1": "4,4,6,0"}, version=2, zone="z", ha="h:1", mappings=[mapping_info("T1", epoch=2)]
    )
    ns.register("b2")
    ns.register("b2", topics={"T1": "4,4,6,0"}, version=2)
    ns.register("b2", topics={"T1": "4,4,6,0"}, version=3)
    ns.unregister()
    return ns.entries()


def test_a_replay_goes_on_from_any_place(events: list[Event]) -> None:
    whole = replay(Tables(), events)
    for cut in range(len(events)):
        assert replay(replay(Tables(), events[:cut]), events[cut:]) == whole
    assert whole.seq == len(events)


def test_a_removed_broker_keeps_its_topics_under_its_epoch(ns: Namespace, events: list[Event]) -> None:
    ns.unregister("b1", 1)
    after = replay(Tables(), ns.entries())
    assert set(after.living()) == {"b2"}
    assert set(after.brokers["b1"].topics) == {"T1", "T2"}
    ns.register(topics=("N1", "N2"))
    assert set(replay(Tables(), ns.entries()).brokers["b1"].topics) == {"N1", "N2"}


def without(events: list[Event], number: int) -> list[Event]:
    return events[:number] + events[number + 1 :]


@pytest.mark.parametrize("number", range(9))
def test_a_hole_is_noticed(events: list[Event], number: int) -> None:
    with pytest.raises(ReplayError, match="follows"):
        replay(Tables(), without(events, number))


@pytest.mark.parametrize("number", range(1, 9))
def test_a_repeated_entry_is_noticed(events: list[Event], number: int) -> None:
    with pytest.raises(ReplayError, match="follows"):
        replay(Tables(), events[: number + 1] + events[number:])


def first(events: list[Event], kind: str, cause: str, changed: dict[str, str]) -> int:
    """Where the first entry of a kind is that says something of what shall be changed."""
    needed = {name for name in changed if name.endswith("_before")}
    return next(
        i
        for i, event in enumerate(events)
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
        pytest.param("topics_changed", "", {"dv_before": "0:0:0"}, id="topics of another version"),
        pytest.param("mappings_changed", "", {"dv_before": "0:0:0"}, id="infos of another version"),
        pytest.param("topics_changed", "", {"epoch": "7"}, id="topics of another epoch"),
        pytest.param("mappings_changed", "", {"rows": '[["b1","T1",{},null]]'}, id="other infos"),
        pytest.param("broker_removed", "", {"kind": "surprise"}, id="an unknown kind"),
        pytest.param("broker_removed", "", {"inc": "7"}, id="another incarnation"),
    ],
)
def test_what_does_not_follow_is_refused(
    events: list[Event], kind: str, cause: str, changed: dict[str, str]
) -> None:
    number = first(events, kind, cause, changed)
    spoilt = replace(events[number], fields={**events[number].fields, **changed})
    with pytest.raises(ReplayError, match=str(spoilt.id)):
        replay(Tables(), [*events[:number], spoilt])


def entry(seq: int, kind: str, **fields: Any) -> Event:
    return Event(EventId(seq), {"kind": kind, "cause": "", "inc": "1", "seq": str(seq), **fields})


def test_a_member_was_gone_when_its_lease_ended_not_when_that_was_recorded(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1)
    ns.register("b2")
    at_ms, events = ns.now_ms(), ns.entries()
    before = replay(Tables(), events)
    ns.lapse("b1", 1, ago_ms=10_000)
    ns.expire()
    ns.unregister("b2")
    later = ns.entries()[len(events) :]
    seen = visible_at(before, later, at_ms)
    assert {name: set(broker.addrs) for name, broker in seen.living().items()} == {"b1": {0}, "b2": {0}}
    long_before = visible_at(before, later, at_ms - 20_000)
    assert set(long_before.brokers["b1"].addrs) == {0, 1}


def test_a_member_that_registered_again_meanwhile_is_judged_by_its_first_removal(ns: Namespace) -> None:
    ns.register()
    before, at_ms = replay(Tables(), ns.entries()), ns.now_ms()
    later = [
        entry(1, "broker_registered", broker="b1", id="0"),
        entry(2, "broker_removed", broker="b1", id="0", effective_ms=str(at_ms - 1)),
    ]
    assert visible_at(before, later, at_ms) == before
    assert visible_at(before, later[1:], at_ms).living() == {}


def test_drains_and_checkpoints_and_unknown_fields() -> None:
    started = entry(1, "stream_started", cause="empty_store", later="x")
    drained = entry(2, "drain_changed", broker="b1", after='{"owner":"a"}')
    ended = entry(3, "drain_changed", broker="b1", before='{"owner":"a"}')
    begin = entry(4, "checkpoint", scope="begin")
    after = replay(Tables(), [started, drained])
    assert after.drains == {"b1": '{"owner":"a"}'}
    assert replay(after, [ended, begin]).drains == {}


def test_a_stream_that_was_lost_goes_on_with_the_tables(events: list[Event]) -> None:
    whole = replay(Tables(), events)
    after = replay(whole, [entry(1, "stream_started", cause="stream_lost")])
    assert (after.brokers, after.seq, after.inc) == (whole.brokers, 1, "1")
    assert replay(whole, [entry(1, "stream_started", cause="empty_store")]) == Tables("1", 1)


def test_an_address_under_two_names_is_one_member(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=address("b1"), ha="h:2", version=3)
    after = replay(Tables(), ns.entries())
    assert after.members[f"c1:{address('b1')}"].ha == "h:2"
    ns.unregister("b2", at=address("b1"))
    assert replay(Tables(), ns.entries()).members == after.members


def test_the_example_of_the_documentation(ns: Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    ns.register()
    a_round(ns)
    exec(example.replace("Redis(decode_responses=True)", "STORE"), {"STORE": ns.store})
    last = ns.entries()[-1]
    assert capsys.readouterr().out == f"True {last.incarnation} {last.sequence} ['b1']\n"
