"""values.yaml: each value is explained, and is in the schema."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.helm.chart import CHART

TEXT = (CHART / "values.yaml").read_text()
VALUES = yaml.safe_load(TEXT)
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
FREE = ("options", "resources", "conf")
"""Keys of tables that may have other members than values.yaml shows."""
COMPONENTS = ("remoting", "http", "jobs", "scheduler", "drift", "pipeline")


def _known(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Return the paths of all values of the schema."""
    if reference := schema.get("$ref"):
        schema = SCHEMA["$defs"][reference.rpartition("/")[2]]
    for name, below in schema.get("properties", {}).items():
        yield path + name
        if name not in FREE and path + name not in [f"{component}.pods" for component in COMPONENTS]:
            yield from _known(below, f"{path}{name}.")


def _given(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, below in values.items():
        yield path + name
        if isinstance(below, dict) and name not in FREE:
            yield from _given(below, f"{path}{name}.")


def _objects(schema: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if "properties" in schema:
            yield path, schema
        for key, below in schema.items():
            yield from _objects(below, f"{path}.{key}")


def test_each_value_is_explained_right_above_it() -> None:
    lines = TEXT.splitlines()
    grouping = {"redis", "embedded", "tls", "image", "persistence", "jobQueue", "service", "autoscaling"}
    grouping |= {"serviceAccount", "warehouse", "spark"}  # their members say what they are
    silent = [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if (key := re.match(r" *([A-Za-z]+):", line))
        and not above.strip().startswith("#")
        and not (key[1] in grouping and line.rstrip().endswith(":"))
        and key[1] not in ("requests", "limits")
    ]
    assert silent == []


def test_values_and_schema_name_the_same() -> None:
    assert sorted(_given(VALUES)) == sorted(set(_known(SCHEMA)) - {"global"})


def test_the_schema_is_strict_everywhere() -> None:
    lax = [path for path, schema in _objects(SCHEMA) if schema.get("additionalProperties") is not False]
    assert lax == []
