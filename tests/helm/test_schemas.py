"""Every object of every case is valid by the API servers' schemas."""

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kubernetes_validate.utils import schema_contents
from referencing import Registry, Resource
from referencing.jsonschema import Schema

from tests.helm.cases import CASES
from tests.helm.chart import CHART, CUSTOM, Object, address, helm, render, templates

VERSIONS = ("1.30", "1.32", "1.34", "1.36", "1.37")
"""From Chart.yaml's oldest version to the newest with schemas."""


@cache
def distinct() -> dict[str, tuple[str, str]]:
    """Return the JSON of each object with its case and address; most are the same in many cases."""
    distinct: dict[str, tuple[str, str]] = {}
    for case, values in CASES.items():
        objects = render(values)
        pods = [{"apiVersion": "v1", "kind": "Pod", **pod} for _, pod in templates(objects)]
        for object_ in (*(one for one in objects if one["kind"] not in CUSTOM), *pods):
            distinct.setdefault(json.dumps(object_, sort_keys=True), (case, object_["kind"]))
    return distinct


@cache
def definitions(version: str) -> Registry[Schema]:
    """Return the definitions of a version's schemas: large, so they are parsed once."""
    file = schema_contents(f"kubernetes-json-schema/v{version}.0-local-strict/_definitions.json", version)
    return (Resource.from_contents(file) @ Registry()).crawl()


@cache
def validator(kind: str, api_version: str, version: str) -> Any:
    """Return a strict validator like that of kubernetes_validate.validate, which makes one for each object."""
    group, _, plain = api_version.rpartition("/")
    file = "-".join(filter(None, (kind.lower(), group.partition(".")[0], plain)))
    schema = schema_contents(f"kubernetes-json-schema/v{version}.0-local-strict/{file}.json", version)
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ definitions(version))


def problem(object_: Object, version: str) -> str | None:
    for error in validator(object_["kind"], object_["apiVersion"], version).iter_errors(object_):
        return f"{error.json_path}: {error.message}"
    return None


@pytest.mark.timeout(180)  # the first renders all cases
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(version: str) -> None:
    problems = [
        f"{case}: {what}: {wrong}"
        for text, (case, what) in distinct().items()
        if (wrong := problem(json.loads(text), version))
    ]
    assert problems == []


def test_what_is_wrong_is_found() -> None:
    """The schemas are strict: a field that does not exist, or one of another type, is refused."""
    (service, *_) = [one for one in render() if one["kind"] == "Service"]
    assert problem(service, VERSIONS[0]) is None
    service["spec"]["sessionAfinity"] = "None"
    assert "sessionAfinity" in (problem(service, VERSIONS[0]) or "")
    del service["spec"]["sessionAfinity"]
    service["spec"]["ports"][0]["port"] = "9876"
    assert "9876" in (problem(service, VERSIONS[0]) or "")


@pytest.mark.parametrize("case", CASES)
def test_no_two_objects_have_one_name(case: str) -> None:
    addresses = [address(one) for one in render(CASES[case])]
    assert len(set(addresses)) == len(addresses)
    assert {one["metadata"]["namespace"] for one in render(CASES[case])} == {"rocketmq"}


def test_older_clusters_are_refused() -> None:
    with pytest.raises(Exception, match=r"requires kubeVersion: >=1\.30\.0-0"):
        helm("template", "mq", str(CHART), "--kube-version", "1.29.9")
    assert helm("template", "mq", str(CHART), "--kube-version", "1.30.0")
