"""EventKind is the one list of kinds: scripts append these, and all that reads entries knows these."""

import re
from pathlib import Path

import pytest

from mqpipeline.clean import KINDS
from registry.events.entry import FIRST, Event, EventId, EventKind
from registry.events.replay import STEPS, UNKNOWN, ReplayError, replay
from worker.cache.invalidation import RULES

ROOT = Path(__file__).parents[2]
ALL = set(EventKind)
GIVEN_THE_KIND = {"rows.lua"}
"""Scripts that are called with the kind; `test_scripts_append_these_kinds` has which."""
WITHOUT_RULE = {EventKind.HOLD_CHANGED, EventKind.SETTINGS_CHANGED, EventKind.ACCESS_CHANGED}
"""Of these a worker drops all that is cached, or all that it knows of callers."""


def test_scripts_append_these_kinds() -> None:
    lua = "\n".join(path.read_text() for path in sorted((ROOT / "lua").rglob("*.lua")))
    appended = set(re.findall(r'emit\(\w+, "(\w+)"|insert\(ctx\.entries, 1, \{ "(\w+)"', lua))
    rows = {"topics_changed", "mappings_changed"}  # registry/queue_data/slices.py names them to the script
    assert {kind or other for kind, other in appended} | rows == ALL


def test_scripts_name_the_kind_where_they_append() -> None:
    """A kind in a variable would not be found above; of slices the script is given it."""
    calls = [
        (path.name, arguments)
        for path in sorted((ROOT / "lua").rglob("*.lua"))
        for arguments in re.findall(r"(?<!function )\bemit\((.*)", path.read_text())
    ]
    assert len(calls) > 10
    assert {name for name, arguments in calls if not re.match(r'\w+, "\w+"', arguments)} <= GIVEN_THE_KIND


def test_the_documentation_lists_these_kinds() -> None:
    page = (ROOT / "docs" / "events.md").read_text()
    table = page.partition("| kind | what changed | fields |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == ALL


def test_the_pipeline_has_these_kinds() -> None:
    assert set(KINDS) == ALL


def test_caches_have_a_rule_for_each() -> None:
    assert set(RULES) == ALL - WITHOUT_RULE


def test_a_replay_has_a_step_for_each() -> None:
    assert set(STEPS) == ALL


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ReplayError, match="1-0: unknown kind 'news'"):
        replay(UNKNOWN, [Event(EventId(1), {"kind": "news", "inc": "1", "seq": "1"})])


@pytest.mark.parametrize(
    ("text", "event_id"),
    [("1767225599000-2", EventId(1767225599000, 2)), ("7", EventId(7)), ("0-0", FIRST)],
)
def test_ids_are_read(text: str, event_id: EventId) -> None:
    assert EventId.parse(text) == event_id
    assert EventId.parse(str(event_id)) == event_id


def test_ids_are_ordered_as_numbers() -> None:
    assert FIRST < EventId(9, 10) < EventId(10, 9) < EventId(10, 10)
