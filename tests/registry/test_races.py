"""Several processes at once on a real Redis: nothing torn, nothing lost, every acknowledged change told once."""

import pytest

from launcher.store import EmbeddedStore
from registry.store import connect
from tests.registry.clients import (
    LARGE,
    SMALL,
    Turn,
    beats,
    comes_and_goes,
    deletes,
    lapses_and_expires,
    loses,
    race,
    reads,
    registers,
    rewrites,
    unregisters,
)
from tests.registry.namespace import Namespace

SECONDS = 1.0
WHOLE = {"reader": reads(SMALL, whole=True)}
PARTS = {"reader": reads(LARGE[::100], whole=False)}


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param({"w1": registers("b1"), "w2": unregisters("b1"), **WHOLE}, id="registrations, 104"),
        pytest.param(
            {"w1": registers("b1"), "w2": lapses_and_expires("b1"), "w3": beats("b1"), **WHOLE},
            id="registrations, lapses and beats",
        ),
        pytest.param(
            {"w1": registers("b1"), "w2": loses("b1", "w1/1"), **WHOLE}, id="registrations, lost connections"
        ),
        pytest.param(
            {"w1": registers("b1"), "w2": deletes("T1"), "w3": rewrites("b1"), **WHOLE},
            id="registrations, 216, 205 and 327",
        ),
        pytest.param(
            {"w1": registers("b1", LARGE), "w2": deletes("T1"), "w3": rewrites("b1"), **PARTS},
            id="large tables, 216, 205 and 327",
        ),
        pytest.param(
            {"w1": registers("b1", LARGE), "w2": registers("b1", LARGE), "w3": unregisters("b1"), **PARTS},
            id="first registrations in chunks by two clients, 104",
        ),
        pytest.param(
            {"w1": comes_and_goes("b1", LARGE), "reader": reads(LARGE[::100], whole=True)},
            id="a reader of chunks",
        ),
        pytest.param(
            {
                "w1": registers("b1", LARGE, acting=True),
                "w2": registers("b1", LARGE, 1, acting=True),
                "w3": unregisters("b1"),
                "w4": lapses_and_expires("b1"),
                **PARTS,
            },
            id="a master that comes and goes amid chunks",
        ),
        pytest.param(
            {
                "w1": registers("b1", acting=True),
                "w2": registers("b1", SMALL, 1, acting=True),
                "w3": registers("b2", SMALL, 0, at="127.1.1.1:1"),
                "w4": registers("b2", SMALL, 0, at="127.1.1.2:1"),
                "w5": unregisters("b1"),
                "w6": lapses_and_expires("b1", 1),
            },
            id="switches, takeovers and clean-ups of two names",
        ),
    ],
)
def test_races(store: EmbeddedStore, turns: dict[str, Turn]) -> None:
    with connect(store.url) as client:
        reports = race(store.url, turns, SECONDS)
        assert [complaint for report in reports.values() for complaint in report.complaints] == []
        assert all(report.requests for name, report in reports.items() if name != "reader")
        ns = Namespace(client)
        ns.expire()
        ns.settle()
        ns.check()
        told = {event.id: event.text("op") for event in ns.new_entries()}
        acknowledged = [pair for report in reports.values() for pair in report.acknowledged]
        assert acknowledged
        assert [(op, told.get(event_id)) for op, event_id in acknowledged] == [
            (op, op) for op, _ in acknowledged
        ]
