"""The dashboard keeps to Grafana's model: positions on its grid, thresholds in order, names that are there once."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any, Final

import pytest

from tools.dashboard import COLUMNS, FILE

DASHBOARD: Final[dict[str, Any]] = json.loads(FILE.read_text())
PANELS: Final = [
    pytest.param(panel, id=panel["title"]) for panel in DASHBOARD["panels"] if panel["type"] != "row"
]
KINDS: Final = {"timeseries", "stat", "table", "heatmap", "state-timeline"}
COLOURS: Final = {"green", "orange", "red"}


def test_ids_titles_and_places_are_there_once() -> None:
    ids, titles = (panel["id"] for panel in DASHBOARD["panels"]), (panel.id for panel in PANELS)
    assert max(*Counter(ids).values(), *Counter(titles).values()) == 1
    taken = Counter(
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    )
    assert max(taken.values()) == 1
    assert {x for x, _ in taken} == set(range(COLUMNS))


def test_its_own_id_has_eight_to_forty_characters() -> None:
    assert 8 <= len(DASHBOARD["uid"]) <= 40


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel(panel: dict[str, Any]) -> None:
    assert panel["type"] in KINDS
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    field = panel["fieldConfig"]["defaults"]
    for mapping in field.get("mappings", ()):
        assert mapping["type"] == "value"
        assert {text["color"] for text in mapping["options"].values()} <= COLOURS
    if steps := field.get("thresholds", {}).get("steps"):
        assert steps[0]["value"] is None
        assert all(low["value"] < high["value"] for low, high in pairwise(steps[1:]))
        assert {step["color"] for step in steps} <= COLOURS


@pytest.mark.parametrize("panel", PANELS)
def test_queries_use_variables_that_there_are(panel: dict[str, Any]) -> None:
    named = {f"${variable['name']}" for variable in DASHBOARD["templating"]["list"]} | {"$__rate_interval"}
    for target in panel["targets"]:
        rest = target["expr"]
        for name in named:
            rest = rest.replace(name, "")
        assert "$" not in rest, target["expr"]
