"""Which entries are log lines, and how many."""

import asyncio
import logging

import pytest

from registry.events.entry import Event
from tests.worker.jobs.test_event_counts import NOW_MS, event
from worker.jobs import event_log
from worker.jobs.event_log import LINES, EventLog
from worker.logs.log_lines import FIELDS


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def logged(caplog: pytest.LogCaptureFixture, *events: Event, for_s: float = 0) -> list[str]:
    """Return the messages of the lines of these entries."""

    async def observe() -> None:
        lines = EventLog()
        for one in events:
            lines.observe(one)
        await asyncio.sleep(for_s)

    asyncio.run(observe())
    return [line.getMessage() for line in caplog.records if line.name == event_log.__name__]


def test_a_line_says_what_changed_and_by_whom(caplog: pytest.LogCaptureFixture) -> None:
    fields = {"cluster": "c1", "broker": "b1", "id": "0", "actor": "wire:127.0.0.1:1", "op": "op1"}
    of_stream = {
        "v": "1",
        "kind": "broker_registered",
        "cause": "first",
        "inc": "1",
        "seq": "7",
        "part": "1/2",
    }
    entry = Event.of(f"{NOW_MS}-1", of_stream | fields)
    assert logged(caplog, entry) == ["broker_registered first"]
    assert getattr(caplog.records[-1], FIELDS) == {"event": f"{NOW_MS}-1", **fields}


def test_a_long_field_is_shortened(caplog: pytest.LogCaptureFixture) -> None:
    logged(caplog, event("kv_changed", "put", after="v" * 10_000))
    assert len(getattr(caplog.records[-1], FIELDS)["after"]) == 201


@pytest.mark.parametrize(
    "entry",
    [
        event("checkpoint", "start"),
        event("topics_changed", "register"),
        event("mappings_changed", "register"),
    ],
    ids=lambda entry: entry.kind,
)
def test_no_line_of(caplog: pytest.LogCaptureFixture, entry: Event) -> None:
    assert logged(caplog, entry) == []


def test_an_operation_with_many_entries_has_a_line_for_each_broker(caplog: pytest.LogCaptureFixture) -> None:
    wiped = [event("topics_changed", "wipe", op="op1", broker=name) for name in ("b1", "b1", "b2", "b1")]
    again = event("topics_changed", "wipe", op="op2", broker="b1")
    assert logged(caplog, *wiped, again) == ["topics_changed wipe"] * 3


def test_of_very_many_alike_the_number_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "EVERY_S", 0.1)
    gone = [event("broker_removed", "expired", broker=n) for n in range(LINES + 7)]
    lines = logged(caplog, *gone, event("kv_changed", "put"), for_s=0.5)
    assert lines.count("broker_removed expired") == LINES
    assert lines[-2:] == [
        "kv_changed put",
        "broker_removed expired: 7 more within 0.1 s, see `mqns events`",
    ]


def test_each_period_has_lines_of_its_own(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "EVERY_S", 0.1)
    monkeypatch.setattr(event_log, "LINES", 1)

    async def observe() -> None:
        lines = EventLog()
        for number in range(2):
            lines.observe(event("kv_changed", "put", op=number))
            await asyncio.sleep(0.3)

    asyncio.run(observe())
    assert caplog.messages == ["kv_changed put"] * 2


def test_what_was_left_out_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def observe() -> None:
        lines = EventLog()
        for number in range(LINES + 3):
            lines.observe(event("kv_changed", "put", op=number))
        lines.close()

    asyncio.run(observe())
    assert caplog.messages[LINES:] == ["kv_changed put: 3 more within 10 s, see `mqns events`"]
