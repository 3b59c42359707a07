"""The chart as Helm renders it, and helpers to read its objects."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from testbed.needs import need

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "helm"
COMPONENTS: Final = ("remoting", "http", "jobs", "scheduler")
SELECTOR: Final = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")
COMPONENT: Final = SELECTOR[-1]
NOTES: Final = "templates/notes.yaml"
CUSTOM: Final = ("PodMonitor", "PrometheusRule")
"""Kinds that an operator brings: no schema of Kubernetes and no API server without it has them."""
WORKLOADS: Final = ("Deployment", "StatefulSet", "CronJob", "Pod")

Object = dict[str, Any]
Values = Mapping[str, Any]


class Refused(Exception):
    """Helm's error about values that it refuses."""


def helm(*words: str, given: str = "") -> str:
    """Return the output of a Helm command. Raises Refused with its error."""
    need("helm")
    program = shutil.which("helm", path=f"{os.environ['PATH']}:{ROOT / 'build' / 'helm' / 'bin'}")
    assert program
    done = subprocess.run([program, *words], input=given, capture_output=True, text=True, timeout=50)
    if done.returncode:
        raise Refused(done.stdout + done.stderr)
    return done.stdout


def render(values: Values | None = None, release: str = "mq", namespace: str = "rocketmq") -> list[Object]:
    """Return all objects of a release with these values, with hooks."""
    return _parsed(json.dumps(values or {}), release, namespace)


def notes(values: Values | None = None, *more: str) -> str:
    """Return the notes that Helm prints after an installation, `more` being words of `helm template`.

    They are read from an object: Helm 3 renders NOTES.txt only where it reaches a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(shutil.copytree(CHART, Path(folder) / "chart"))
        shutil.move(chart / "templates" / "NOTES.txt", chart)
        (chart / NOTES).write_text('kind: Notes\ntext: {{ tpl (.Files.Get "NOTES.txt") . | toJson }}\n')
        words = ("template", "mq", str(chart), "-n", "rocketmq", "--show-only", NOTES, "-f", "-", *more)
        text: str = yaml.load(helm(*words, given=json.dumps(values or {})), yaml.CSafeLoader)["text"]
    return text


@cache
def _rendered(values: str, release: str, namespace: str) -> str:
    return helm("template", release, str(CHART), "-n", namespace, "-f", "-", given=values)


def _parsed(values: str, release: str, namespace: str) -> list[Object]:
    documents = yaml.load_all(_rendered(values, release, namespace), yaml.CSafeLoader)
    return [document for document in documents if document]


def find(objects: list[Object], kind: str, name: str) -> Object:
    """Return the only object of that kind and name."""
    named = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    assert len(named) == 1, f"{len(named)} of {kind} {name} among {[address(one) for one in objects]}"
    return named[0]


def names(objects: list[Object], kind: str) -> list[str]:
    return sorted(one["metadata"]["name"] for one in objects if one["kind"] == kind)


def address(one: Object) -> str:
    """Return `Kind/name`."""
    return f"{one['kind']}/{one['metadata']['name']}"


def at(value: Any, path: str) -> Any:
    """Return the value at a path such as `spec ports 0 port`, None without one. A key may be a list item's `name`."""
    for key in path.split():
        if isinstance(value, list):
            named = [item for item in value if isinstance(item, dict) and item.get("name") == key]
            value = (
                named[0] if named else value[int(key)] if key.isdecimal() and int(key) < len(value) else None
            )
        else:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return None
    return value


def templates(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Return address and pod template of each object that makes pods, also of those that Spark starts."""
    for object_ in objects:
        if object_["kind"] == "Pod":
            yield address(object_), object_
        elif object_["kind"] == "CronJob":
            yield address(object_), object_["spec"]["jobTemplate"]["spec"]["template"]
        elif object_["kind"] in WORKLOADS:
            yield address(object_), object_["spec"]["template"]
        elif object_["kind"] == "ConfigMap" and "executor.yaml" in object_["data"]:
            yield address(object_), yaml.safe_load(object_["data"]["executor.yaml"])


def container(one: Object) -> Object:
    """Return the only container of a workload."""
    ((_, pod),) = templates([one])
    (only,) = pod["spec"]["containers"]
    return dict(only)


POD_IP = "10.244.0.7"


def value_of(variable: Object) -> Any:
    """Return the value of a variable as its container has it; a Secret's as the source that it has."""
    if at(variable, "valueFrom fieldRef fieldPath") == "status.podIP":
        return POD_IP
    return variable.get("value", variable.get("valueFrom"))


def environment(one: Object) -> dict[str, Any]:
    """Return each variable's value, or its source."""
    variables = container(one)["env"]
    assert len({variable["name"] for variable in variables}) == len(variables), "a variable twice"
    return {variable["name"]: value_of(variable) for variable in variables}


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
