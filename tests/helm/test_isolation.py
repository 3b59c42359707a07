"""Selectors of one component of one release select no other pods."""

from typing import Any, NamedTuple

import pytest

from tests.helm.cases import CASES, merged
from tests.helm.chart import COMPONENT, SELECTOR, Object, address, at, matches, render, templates

ALL = merged(
    CASES["embedded, self-signed, scaled"],
    CASES["stream-executors"],
    CASES["drift"],
    {"networkPolicy": {"egress": [{}], "remotingFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}},
)
PATHS = (
    "spec selector",  # Services
    "spec selector matchLabels",  # Deployments, budgets
    "spec podSelector matchLabels",  # policies
)


class Selects(NamedTuple):
    owner: str
    labels: dict[str, str]


def selectors(objects: list[Object]) -> list[Selects]:
    selectors = []
    for object_ in objects:
        for path in PATHS:
            labels = at(object_, path)
            if labels and "matchLabels" not in labels:
                selectors.append(Selects(f"{address(object_)} {path}", labels))
    for owner, pod in templates(objects):
        for spread in pod["spec"].get("topologySpreadConstraints", ()):
            selectors.append(Selects(f"{owner} spread", spread["labelSelector"]["matchLabels"]))
    return selectors


def peers(policy: Any) -> list[dict[str, str]]:
    """Return selectors of pods among the peers of a policy."""
    if isinstance(policy, dict):
        own = (
            [policy["podSelector"]["matchLabels"]] if policy.get("podSelector", {}).get("matchLabels") else []
        )
        return own + [
            found for key, value in policy.items() for found in peers(value) if key != "podSelector"
        ]
    return [found for item in policy for found in peers(item)] if isinstance(policy, list) else []


def pods(objects: list[Object]) -> dict[str, dict[str, str]]:
    return {owner: pod["metadata"]["labels"] for owner, pod in templates(objects)}


@pytest.mark.parametrize("other", ["nm", "mq-remoting", "mq2"])
def test_releases_do_not_meet(other: str) -> None:
    mine, others = render(ALL), render(ALL, release=other)
    policies = [one for one in mine if one["kind"] == "NetworkPolicy"]
    everything = [*selectors(mine), *(Selects("peer", labels) for labels in peers(policies))]
    assert len(everything) > 25
    for owner, labels in everything:
        assert not [pod for pod, have in pods(others).items() if matches(labels, have)], owner
        assert [pod for pod, have in pods(mine).items() if matches(labels, have)], owner
    assert not {address(one) for one in mine} & {address(one) for one in others}


def test_each_selects_its_own_component_only() -> None:
    objects = render(ALL)
    for owner, labels in selectors(objects):
        assert set(labels) == set(SELECTOR), owner
        selected = [pod for pod, have in pods(objects).items() if matches(labels, have)]
        assert len(selected) == 1, (owner, selected)
        assert labels[COMPONENT] in owner, (owner, labels)


def test_long_names_stay_different_and_short() -> None:
    one, other = "a" * 52 + "b", "a" * 53
    for release in (one, other):
        for thing in render(ALL, release=release):
            appended = 11 if thing["kind"] in ("CronJob", "StatefulSet") else 0
            assert len(thing["metadata"]["name"]) <= 63 - appended
    assert not {address(thing) for thing in render(ALL, release=one)} & {
        address(thing) for thing in render(ALL, release=other)
    }


def test_a_name_of_ones_own_is_taken() -> None:
    assert {one["metadata"]["name"].split("-")[0] for one in render({"fullnameOverride": "names"})} == {
        "names"
    }
