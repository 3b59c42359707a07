"""Nodes are emptied one after the other, as for an upgrade of a cluster, and the budgets are kept."""

from collections.abc import Iterator

import pytest

from testbed.eventually import eventually
from tests.helm.chart import COMPONENTS, find, render
from tests.kube.cluster import Cluster, Done, Namespace

SPREAD = {"remoting": {"replicas": 3}}
VIOLATED = "violate the pod's disruption budget"
TWO_BUDGETS = "more than one PodDisruptionBudget"
SOON = "--timeout=8s"
EMPTIED_WITHIN_S = 120.0


def drain(cluster: Cluster, node: str, *words: str) -> Done:
    """Only of pods of the chart."""
    return cluster.run("kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", *words)


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    """Their names, when no pods of other tests are left there; all take pods again afterwards."""
    eventually(lambda: not _going(cluster), EMPTIED_WITHIN_S)
    names = cluster.kubectl("get", "nodes", "--output=name").split()
    yield [name.removeprefix("node/") for name in names]
    cluster.kubectl("uncordon", *names)


def test_each_node_is_emptied_in_turn(namespace: Namespace, nodes: list[str]) -> None:
    namespace.install("mq", SPREAD)
    assert {pod["spec"]["nodeName"] for pod in namespace.pods("mq", "remoting")} == set(nodes)
    for node in nodes:
        drained = drain(namespace.cluster, node, "--timeout=120s")
        assert drained.returncode == 0, drained.stderr
        assert not [pod for pod in namespace.get("pods") if pod["spec"].get("nodeName") == node]
        namespace.cluster.kubectl("uncordon", node)
    for component in COMPONENTS:
        namespace.kubectl("rollout", "status", f"deployment/mq-{component}", "--timeout=60s")


def test_no_second_pod_goes_while_one_is_away(namespace: Namespace, nodes: list[str]) -> None:
    """Nowhere else is room: what was sent away does not come back, and the rest has to stay."""
    first, *others = nodes
    namespace.cluster.kubectl("cordon", *others)
    namespace.install("mq", {})
    refused = drain(namespace.cluster, first, SOON)
    assert refused.returncode
    assert VIOLATED in refused.stderr
    for component in COMPONENTS:
        kept = [pod for pod in namespace.pods("mq", component) if pod["spec"].get("nodeName") == first]
        assert len(kept) == 1, component
    namespace.cluster.kubectl("uncordon", *others)
    drained = drain(namespace.cluster, first, "--timeout=120s")
    assert drained.returncode == 0, drained.stderr


def test_a_budget_that_two_releases_share_is_seen(namespace: Namespace, nodes: list[str]) -> None:
    """The mistake: a selector that does not name the release. Nothing refuses it before a node is to be emptied."""
    namespace.install("mq", {})
    budget = find(render(release="mq", namespace=namespace.name), "PodDisruptionBudget", "mq-remoting")
    budget["metadata"]["name"] = "shared"
    del budget["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"]
    assert namespace.admit([budget]).returncode == 0
    namespace.apply([budget])
    refused = [drain(namespace.cluster, node, SOON) for node in nodes]
    assert any(TWO_BUDGETS in one.stderr for one in refused), [one.stderr for one in refused]


def _going(cluster: Cluster) -> list[str]:
    """Namespaces that are being deleted."""
    phases = cluster.kubectl("get", "namespaces", "--output=custom-columns=:metadata.name,:status.phase")
    return [line for line in phases.splitlines() if "Terminating" in line]
