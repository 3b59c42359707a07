"""What becomes of a release: it is installed, changed and removed, beside another one."""

from typing import Any

from testbed.eventually import eventually
from tests.helm.cases import CASES, merged
from tests.helm.chart import COMPONENTS
from tests.kube.cluster import Namespace

THREE = {"remoting": {"replicas": 3}}
OUTSIDE = {"remoting": {"service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}}}


def ready(pods: list[dict[str, Any]]) -> int:
    """How many of them are."""
    return sum(_is_ready(pod) for pod in pods)


def test_it_comes_up_and_is_changed_and_leaves_nothing(namespace: Namespace) -> None:
    said = namespace.install("mq", merged(CASES["embedded, self-signed, two"], OUTSIDE))
    assert f"namesrvAddr=mq-remoting.{namespace.name}.svc.cluster.local:9876" in said
    for component in COMPONENTS:
        assert ready(namespace.pods("mq", component)) == 2, component
    (service,) = (one for one in namespace.get("services") if one["metadata"]["name"] == "mq-remoting")
    assert service["status"]["loadBalancer"]["ingress"], "no address outside the cluster"
    before = {pod["metadata"]["uid"] for pod in namespace.pods("mq", "remoting")}

    namespace.upgrade("mq", merged(THREE, {"options": {"shutdownWaitTimeSeconds": 7}}))
    after = namespace.pods("mq", "remoting")
    assert ready(after) == 3
    assert not before & {pod["metadata"]["uid"] for pod in after if _is_ready(pod)}, "the old options go on"

    namespace.uninstall("mq")
    # Helm waits for what it made; the pods of a Deployment end after it.
    eventually(lambda: not namespace.objects(), 60)


def test_an_upgrade_that_changes_nothing_moves_no_pod(namespace: Namespace) -> None:
    namespace.install("mq", THREE)
    before = {pod["metadata"]["uid"] for component in COMPONENTS for pod in namespace.pods("mq", component)}
    namespace.upgrade("mq", THREE)
    assert before == {
        pod["metadata"]["uid"] for component in COMPONENTS for pod in namespace.pods("mq", component)
    }


def test_two_releases_live_side_by_side(namespace: Namespace) -> None:
    for release in ("a", "b"):
        namespace.install(release, {"options": {"namespace": release}})
    for release in ("a", "b"):
        own = {pod["status"]["podIP"] for pod in namespace.pods(release, "remoting")}
        assert addresses(namespace, f"{release}-remoting") == own
        assert len(own) == 2
    namespace.uninstall("a")
    left = namespace.objects()
    assert left
    assert not [name for name in left if name.partition("/")[2].startswith(("a-", "a."))]
    assert ready(namespace.pods("b", "remoting")) == 2


def addresses(namespace: Namespace, service: str) -> set[str]:
    """Of the pods that a service leads to."""
    slices = namespace.get("endpointslices", f"--selector=kubernetes.io/service-name={service}")
    return {address for one in slices for end in one["endpoints"] for address in end["addresses"]}


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
