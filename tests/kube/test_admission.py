"""What the API server says of the chart's objects: of each case, and of mistakes that schemas let through."""

import copy
from collections.abc import Callable, Iterator

import pytest

from tests.helm.cases import CASES
from tests.helm.chart import CUSTOM, Object, find, render, templates
from tests.helm.test_mirror_manifest import of_the_page
from tests.kube.cluster import Cluster, Done, Namespace

NEVER = {
    "remoting": {
        "pods": {
            "topologySpread": [
                {"topologyKey": "example.com/rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            ]
        }
    }
}


CLASSES = ("high", "higher")
"""Of priority, which a case names."""


@pytest.fixture
def classes(cluster: Cluster) -> Iterator[None]:
    """What is no namespace's."""
    for name in CLASSES:
        cluster.kubectl("create", "priorityclass", name, "--value=1")
    yield
    cluster.kubectl("delete", "priorityclass", *CLASSES)


def admit(namespace: Namespace, objects: list[Object]) -> Done:
    """Pods that no controller makes are taken only if their account is there."""
    accounts = [one for one in objects if one["kind"] == "ServiceAccount"]
    namespace.apply(accounts)
    return namespace.admit(objects)


@pytest.mark.usefixtures("classes")
def test_every_case_is_admitted_without_a_warning(namespace: Namespace) -> None:
    """All at once, each as a release of its own."""
    releases = {f"case-{number}": name for number, name in enumerate(CASES)}
    objects = [
        one
        for release, name in releases.items()
        for one in render(CASES[name], release=release, namespace=namespace.name)
        if one["kind"] not in CUSTOM
    ]
    said = admit(namespace, objects)
    assert said.returncode == 0, f"{said.stderr}\n{releases}"
    assert said.stdout.count("serverside-applied") == len(objects)


def test_the_manifest_of_a_mirror_gets_its_pod(namespace: Namespace) -> None:
    """That of docs/kubernetes.md, beside the chart."""
    manifest = of_the_page()
    manifest["metadata"]["namespace"] = namespace.name
    said = namespace.admit([manifest])
    assert said.returncode == 0, said.stderr
    namespace.apply([manifest])
    namespace.kubectl("wait", "deployment/mirror", "--for=condition=Available", "--timeout=60s")


def service_of_no_type(objects: list[Object]) -> None:
    find(objects, "Service", "mq-remoting")["spec"]["type"] = "LoadBalanced"


def selector_of_other_pods(objects: list[Object]) -> None:
    find(objects, "Deployment", "mq-remoting")["spec"]["selector"]["matchLabels"]["tier"] = "front"


def budget_of_both_kinds(objects: list[Object]) -> None:
    find(objects, "PodDisruptionBudget", "mq-remoting")["spec"]["minAvailable"] = 1


def pod_as_root(objects: list[Object]) -> None:
    pod(objects)["securityContext"]["runAsNonRoot"] = False


def pod_that_may_gain_rights(objects: list[Object]) -> None:
    pod(objects)["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True


def mount_without_volume(objects: list[Object]) -> None:
    pod(objects)["containers"][0]["volumeMounts"].append({"name": "none", "mountPath": "/none"})


def pod(objects: list[Object]) -> Object:
    ((_, template),) = templates([find(objects, "Deployment", "mq-remoting")])
    return dict(template["spec"])


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (service_of_no_type, 'Unsupported value: "LoadBalanced"'),
        (selector_of_other_pods, "`selector` does not match template `labels`"),
        (budget_of_both_kinds, "minAvailable and maxUnavailable cannot be both set"),
        (pod_as_root, "runAsNonRoot != true"),
        (pod_that_may_gain_rights, "allowPrivilegeEscalation != false"),
        (mount_without_volume, 'Not found: "none"'),
    ],
)
def test_a_mistake_is_seen(namespace: Namespace, mistake: Callable[[list[Object]], None], words: str) -> None:
    objects = copy.deepcopy(render(namespace=namespace.name))
    assert admit(namespace, objects).returncode == 0
    mistake(objects)
    said = namespace.admit(objects)
    assert said.returncode
    assert words in said.stderr


def test_a_pod_that_is_not_restricted_is_refused(namespace: Namespace) -> None:
    """Not only warned of: its Deployment gets no pod."""
    objects = copy.deepcopy(render(namespace=namespace.name))
    pod_as_root(objects)
    deployment = find(objects, "Deployment", "mq-remoting")
    namespace.apply([deployment])
    wait = ("wait", "deployment/mq-remoting", "--for=condition=ReplicaFailure", "--timeout=60s")
    namespace.kubectl(*wait)
    assert not namespace.pods("mq", "remoting")


def test_a_spread_that_never_schedules_is_seen(namespace: Namespace) -> None:
    """Nodes have no such label. Nothing refuses it; it is the waiting that tells."""
    assert admit(namespace, render(NEVER, namespace=namespace.name)).returncode == 0
    namespace.kubectl("delete", "serviceaccount", "mq")
    tried = namespace.try_to_install("mq", NEVER, "--timeout=10s")
    assert tried.returncode
    reasons = [event["message"] for event in namespace.get("events") if event["reason"] == "FailedScheduling"]
    assert any("topology spread constraints" in reason for reason in reasons), reasons
