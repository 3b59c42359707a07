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


def test_notes_name_each_way_from_outside() -> None:
    assert "loadBalancer" not in notes()
    balanced = notes({"remoting": {"service": {"type": "LoadBalancer"}}})
    assert "get service mq-remoting" in balanced
    assert ".status.loadBalancer.ingress[0]" in balanced
    assert ".spec.ports[0].nodePort" in notes({"remoting": {"service": {"type": "NodePort"}}})


def test_the_embedded_redis_is_warned_of() -> None:
    standalone = {"redis": {"kind": "standalone", "hosts": ["r:6379"]}}
    assert "WARNING" not in notes(standalone)
    assert "all registrations and settings are lost when that pod goes" in notes()
    persistent = notes({"redis": {"embedded": {"persistence": {"enabled": True}}}})
    assert "WARNING: the embedded Redis is for trial" in persistent
    assert "are lost" not in persistent


def test_notes_name_the_test() -> None:
    assert "helm test mq -n rocketmq" in notes()
