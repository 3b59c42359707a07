"""The measurement of costs: what is taken for a cost, on a real server for a moment."""

import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from bench import model
from bench.cost_scene import each_second, stage
from bench.servers import ROLES, role_of
from bench.setting import Setting, prepare
from bench.workloads import lookups, registered, topic_changes
from mqnamesrv import costs

CHANGING, TOPICS = 20, 10


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return prepare(tmp_path_factory.mktemp("programs"), rounds=2, seconds=0.5, warm_up_s=0.2)


def test_costs_are_of_each_role_beside_what_is_counted_exactly(setting: Setting) -> None:
    rate = 200.0
    with stage(setting, registered(CHANGING, TOPICS)()) as on:
        events = on.events()
        change = on.cost(partial(topic_changes, CHANGING, TOPICS, 1), rate, CHANGING)
        made = on.events() - events
        events = on.events()
        asked = on.cost(partial(lookups, TOPICS), rate, CHANGING)
        assert on.events() == events
        roles = {role_of(pid) for pid in on.server.cpu_seconds_by_process()}
    assert roles == set(ROLES) == change.keys() == asked.keys() == on.first.keys()
    assert made == pytest.approx(rate * (setting.warm_up_s + setting.rounds * setting.seconds), rel=0.05)


def test_costs_of_a_second() -> None:
    assert each_second(5, dict.fromkeys(ROLES, 2.0)) == dict.fromkeys(ROLES, 10.0)


def test_parts_become_the_costs_that_are_shipped() -> None:
    shipped = msgspec.to_builtins(costs.measured())
    shipped.pop("conditions")
    half = len(shipped) // 2
    parts = [dict(list(shipped.items())[:half]), dict(list(shipped.items())[half:])]
    assert model.together(parts).change == costs.measured().change
    with pytest.raises(msgspec.ValidationError):
        model.together(parts[:1])


def test_the_table_of_costs() -> None:
    lines = list(model.cost_lines(costs.measured()))
    assert lines[0].startswith(costs.measured().conditions.machine)
    assert sum(line.startswith("| `change` | ") for line in lines) == 3
    assert any(line.startswith("| `route_bytes` |  | 1, 8, 64 | ") for line in lines)


def test_what_is_kept_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: Setting
) -> None:
    called: list[str] = []

    def measured(_: Setting) -> model.Part:
        called.append("a")
        return {}

    monkeypatch.setattr(model, "PARTS", {"a": measured, "b": measured})
    monkeypatch.setattr(model, "prepare", lambda *_, **__: setting)
    monkeypatch.setattr(sys, "argv", ["model", "--keep", str(tmp_path), "--only", "a"])
    for _ in range(2):
        model.main()
    assert called == ["a"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
