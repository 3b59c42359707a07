"""The notes that Helm prints after an installation."""

from typing import Any

import pytest

from tests.helm.chart import find, notes, render


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({}, "namesrvAddr=mq-remoting.rocketmq.svc.cluster.local:9876"),
        (
            {
                "remoting": {"service": {"port": 19876}},
                "clusterDomain": "k8s.example",
                "fullnameOverride": "ns",
            },
            "namesrvAddr=ns-remoting.rocketmq.svc.k8s.example:19876",
        ),
    ],
)
def test_the_line_for_broker_conf_names_the_service(values: dict[str, Any], line: str) -> None:
    assert line in notes(values).splitlines()
    host, _, port = line.partition("=")[2].partition(":")
    service = find(render(values), "Service", host.partition(".")[0])
    assert service["metadata"]["namespace"] == host.split(".")[1]
    assert service["spec"]["ports"][0]["port"] == int(port)


def test_notes_name_the_endpoint_with_the_list_of_name_servers() -> None:
    assert "-Drocketmq.namesrv.domain=mq-http.rocketmq:8080" in notes().splitlines()
    assert "rocketmq.namesrv.domain" not in notes({"http": {"enabled": False}})


def test_notes_name_each_way_from_outside() -> None:
    assert "loadBalancer" not in notes()
    balanced = notes({"remoting": {"service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}}})
    assert "get service mq-remoting" in balanced
    assert ".status.loadBalancer.ingress[0]" in balanced
    on_nodes = notes({"remoting": {"service": {"type": "NodePort", "externalTrafficPolicy": "Local"}}})
    assert ".spec.ports[0].nodePort" in on_nodes


STANDALONE = {"redis": {"kind": "standalone", "hosts": ["r:6379"]}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "Access is by the profile secure"),
        ({}, "No principal is known"),
        ({"options": {"accessProfile": "guarded"}}, "Access is by the profile guarded"),
        ({"options": {"accessMode": "observe"}}, "WARNING: options.accessMode is observe"),
        ({"options": {"accessProfile": "java"}}, "WARNING: with the profile java"),
    ],
)
def test_notes_say_who_is_admitted_and_where_refusals_are(values: dict[str, Any], words: str) -> None:
    text = notes(values)
    assert words in text
    logs = "kubectl -n rocketmq logs -l app.kubernetes.io/instance=mq --all-containers --tail=-1"
    assert f"  {logs} | grep 'access denied'" in text.splitlines()


def test_only_an_upgrade_is_told_how_served_brokers_stay() -> None:
    advice = "options.accessMode=observe serves them until they have a proof"
    assert advice not in notes()
    assert advice in notes({}, "--is-upgrade")
    assert advice not in notes({"options": {"accessMode": "observe"}}, "--is-upgrade")


def test_principals_are_asked_for_once() -> None:
    assert "No principal is known" not in notes({"access": {"existingSecret": "mine"}})


def test_the_embedded_redis_is_warned_of() -> None:
    assert "WARNING" not in notes(STANDALONE)
    assert "all registrations and settings are lost when that pod goes" in notes()
    persistent = notes({"redis": {"embedded": {"persistence": {"enabled": True}}}})
    assert "WARNING: the embedded Redis is for trial" in persistent
    assert "are lost" not in persistent


def test_notes_name_the_test() -> None:
    assert "helm test mq -n rocketmq" in notes()
