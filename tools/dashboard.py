"""Writes the dashboard for Grafana, from `dashboard_panels.py`: `python -m tools.dashboard`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from metrics.rules import written_out
from tools.dashboard_panels import ANNOTATIONS, ROWS, VARIABLES, Panel

FILE = Path(__file__).resolve().parent.parent / "helm" / "files" / "dashboard.json"
COLUMNS: Final = 24
WIDTH, HEIGHT = 8, 8
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    """Return the text of the file."""
    whole = {
        "annotations": {"list": [_annotation(*values) for values in ANNOTATIONS]},
        "editable": True,
        "graphTooltip": 1,
        "panels": list(_placed()),
        "refresh": "30s",
        "schemaVersion": 39,
        "tags": ["rocketmq"],
        "templating": {"list": [_source(), *(_variable(*values) for values in VARIABLES)]},
        "time": {"from": "now-3h", "to": "now"},
        "title": "RocketMQ name server (redis-namesrv)",
        "uid": "redis-namesrv",
    }
    return json.dumps(whole, indent=1) + "\n"


def _placed() -> Iterator[dict[str, Any]]:
    """Yield rows and their panels, three beside each other."""
    ids, y = iter(range(1, 1000)), 0
    for row in ROWS:
        yield {
            "id": next(ids),
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }
        y += 1
        for start in range(0, len(row.panels), COLUMNS // WIDTH):
            for column, panel in enumerate(row.panels[start : start + COLUMNS // WIDTH]):
                position = {"x": column * WIDTH, "y": y, "w": WIDTH, "h": HEIGHT}
                yield _panel(panel) | {"id": next(ids), "gridPos": position}
            y += HEIGHT


def _panel(panel: Panel) -> dict[str, Any]:
    now = panel.kind in ("stat", "table")
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": written_out(query.expression),
                "legendFormat": query.legend,
                "instant": now,
                "range": not now,
                "format": "table" if panel.kind == "table" else "time_series",
            }
            for number, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": OPTIONS[panel.kind],
    } | (_without(panel.hidden) if panel.kind == "table" else {})


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
    },
    "state-timeline": {
        "showValue": "auto",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
    },
    "heatmap": {"calculate": True},
    "table": {"showHeader": True},
}


def _field(panel: Panel) -> dict[str, Any]:
    """Return unit, bounds, thresholds and texts of the panel's values."""
    bounds = {"min": panel.least, "max": panel.most} if panel.kind == "timeseries" else {}
    field: dict[str, Any] = {"unit": panel.unit} | {name: at for name, at in bounds.items() if at is not None}
    if panel.steps:
        steps = [
            {"color": panel.base, "value": None},
            *({"color": colour, "value": at} for at, colour in panel.steps),
        ]
        field["thresholds"] = {"mode": "absolute", "steps": steps}
        if panel.kind == "timeseries":
            field["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
        else:
            field["color"] = {"mode": "thresholds"}
    if panel.texts:
        options = {value: {"text": text, "color": colour} for value, text, colour in panel.texts}
        field["mappings"] = [{"type": "value", "options": options}]
    return field


def _without(columns: tuple[str, ...]) -> dict[str, Any]:
    """Return what removes columns from a table."""
    return {
        "transformations": [{"id": "organize", "options": {"excludeByName": dict.fromkeys(columns, True)}}]
    }


def _annotation(name: str, colour: str, expression: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "enable": True,
        "datasource": SOURCE,
        "iconColor": colour,
        "expr": written_out(expression),
        "step": "1m",
        "titleFormat": name,
        "textFormat": text,
    }


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": written_out(query), "refId": name},
        "definition": written_out(query),
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }


if __name__ == "__main__":
    FILE.write_text(dashboard())
