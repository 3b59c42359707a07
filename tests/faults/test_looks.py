"""A first look shows its fault, or says what it printed instead."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faults import looks
from faults.looks import Look, Seen, When, first_look, substituted, unseen
from faults.places import Place


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "WITHIN_S", 1.0)
    monkeypatch.setattr(looks, "PAUSE_S", 0.01)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    log = tmp_path / "output.txt"
    log.write_text("begins\n")
    fake = SimpleNamespace(
        addresses={"localhost:8080": "127.0.0.1:1"},
        http="127.0.0.1:1",
        variables={"REDIS_URL": "redis://127.0.0.1:2"},
        stage=SimpleNamespace(home=tmp_path),
        server=SimpleNamespace(process=SimpleNamespace(output=log)),
    )
    return cast("Place", fake)


def seen(command: str, place: Place, *shows: str) -> Seen:
    return first_look(Look(shows=shows), command, place, since=time.monotonic())


def test_the_lines_that_show_it_are_kept(place: Place) -> None:
    shown = seen("printf 'a 1\\nb 2\\nc 3\\n'; exit 5", place, "b", "c 3")
    assert (shown.shown, shown.exit_code, shown.lines) == (True, 5, ("b 2", "c 3"))
    assert [*unseen(shown)] == []


def test_each_pattern_has_to_be_there(place: Place) -> None:
    shown = seen("echo one", place, "one", "two")
    assert (shown.shown, shown.lines) == (False, ("one",))
    assert "did not show it (echo one: exit code 0, one)" in next(unseen(shown))


def test_one_that_is_stopped_does_not_hide_what_the_one_before_printed(place: Place) -> None:
    shown = seen('grep -q second "$LOG" && exec sleep 9; echo second >> "$LOG"; echo first', place, "never")
    assert (shown.exit_code, shown.lines) == (0, ("first",))


def test_it_is_repeated_until_it_shows_the_fault(place: Place) -> None:
    assert seen('cat "$LOG"; echo more >> "$LOG"', place, "more").shown


def test_a_command_that_does_not_end_is_stopped(place: Place) -> None:
    assert seen("echo it; exec sleep 9", place, "it").shown is False


def test_addresses_and_variables_are_those_of_the_service(place: Place) -> None:
    assert (
        substituted("curl localhost:8080/metrics localhost:80", place)
        == "curl 127.0.0.1:1/metrics localhost:80"
    )
    assert seen('echo "$REDIS_URL $MQNS_HTTP"', place, "redis://127.0.0.1:2 http://127.0.0.1:1").shown


def test_what_a_look_shows_may_be_known_later(place: Place) -> None:
    look: Look[Any] = Look(shows=lambda at: [at.http], when=When.OVER)
    assert first_look(look, "echo 127.0.0.1:1", place, since=time.monotonic()).shown
