"""Values that Helm refuses before anything is sent to a cluster, with its errors."""

import re
from typing import Any

import pytest

from tests.helm.cases import CASES, merged
from tests.helm.chart import Refused, render

SENTINEL = {"redis": {"kind": "sentinel", "hosts": ["s:26379"], "sentinelMaster": "main"}}
CLUSTER = {"redis": {"kind": "cluster", "hosts": ["c:6379"]}}
QUEUE = {"jobQueue": {"redis": {"hosts": ["q:6379"]}}}
OLD = {"name": "old", "address": "old.example:9876"}
DRIFT: dict[str, Any] = {"drift": {"comparisons": [OLD], "tokenSecret": "token"}}
STREAM = {"pipeline": {"mode": "stream"}}


def _redis(**more: Any) -> dict[str, Any]:
    return {"redis": {"kind": "standalone", "hosts": ["r:6379"], **more}}


OF_THE_SCHEMA: dict[str, dict[str, Any]] = {
    "remoting: replica": {"remoting": {"replica": 3}},
    "remoting: autoscalling": {"remoting": {"autoscalling": {"enabled": True}}},
    "options: remotingWorker": {"options": {"remotingWorker": 2}},
    "options: listenPort": {"options": {"listenPort": 9877}},
    "options: redisUrl": {"options": {"redisUrl": "redis://u:p@h"}},
    "options: tls.server.mode": {"options": {"tls.server.mode": "enforcing"}},
    "options.remotingWorkers: 1": {"options": {"remotingWorkers": 0}},
    "options.clusterTest: boolean": {"options": {"clusterTest": "true"}},
    "options.waitSecondsForService: 147": {"options": {"waitSecondsForService": 1 << 31}},
    "redis.kind: sentinel": {"redis": {"kind": "valkey"}},
    "drift.comparisons.0.name: pattern": {"drift": {"comparisons": [OLD | {"name": "Old_1"}]}},
    "drift.comparisons.0.address: pattern": {"drift": {"comparisons": [OLD | {"address": "old.example"}]}},
    "drift.every: 1": {"drift": {"every": 0}},
    "redis.hosts.0: pattern": _redis(hosts=["redis.db"]),
    "redis.hosts.0: match": _redis(hosts=["user:secret@redis.db:6379"]),
    "redis.existingSecret: string": _redis(existingSecret={"name": "login"}),
    "remoting.replicas: integer": {"remoting": {"replicas": "2"}},
    "remoting.preStopSleepSeconds: 1": {"remoting": {"preStopSleepSeconds": 0}},
    "remoting.service.type: LoadBalancer": {"remoting": {"service": {"type": "ExternalName"}}},
    "http.readinessPath: /readyz": {"http": {"readinessPath": "/health"}},
    "podDisruptionBudget.maxUnavailable: 1": {"podDisruptionBudget": {"maxUnavailable": 0}},
    "pods.topologySpread.0: whenUnsatisfiable": {
        "pods": {"topologySpread": [{"topologyKey": "zone", "maxSkew": 1}]}
    },
    "pods.topologySpread.0: labelSelector": {
        "pods": {
            "topologySpread": [
                {
                    "topologyKey": "zone",
                    "maxSkew": 1,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {},
                }
            ]
        }
    },
    "pods.labels.app.kubernetes.io/instance: alse": {
        "pods": {"labels": {"app.kubernetes.io/instance": "other"}}
    },
    "image.digest: pattern": {"image": {"digest": "latest"}},
    "pipeline.mode: stream": {"pipeline": {"mode": "hourly"}},
    "pipeline.options: URL": {"pipeline": {"options": {"URL": "redis://r"}}},
    "pipeline.options: FORMAT": {"pipeline": {"options": {"FORMAT": "delta"}}},
    "pipeline.options.HEARTBEAT: integer": {"pipeline": {"options": {"HEARTBEAT": "soon"}}},
    "metrics.rules: label": {"metrics": {"rules": {"label": {}}}},
    "tls.clientAuth: optional": {"tls": {"clientAuth": "required"}},
    "options.accessProfile: secure": {"options": {"accessProfile": "secured"}},
    "options.accessMode: observe": {"options": {"accessMode": "log"}},
    "options: accessFile": {"options": {"accessFile": "/etc/access.toml"}},
    "options: proxyTrustedCidrs": {"options": {"proxyTrustedCidrs": "10.0.0.0/8"}},
    "access.files: pattern": {"access": {"files": {"../key": "12345678"}}},
    "access.files.access.toml: string": {"access": {"files": {"access.toml": {"principals": {}}}}},
    "remoting.service.proxyTrustedCidrs.0: pattern": {
        "remoting": {"service": {"proxyTrustedCidrs": ["balancer"]}}
    },
}
"""Names and types, by values.schema.json: `place: a word of the reason` -> the values."""

OF_THE_CHECKS: dict[str, dict[str, Any]] = {
    "redis.hosts is empty: name HOST:PORT of what is standalone": {"redis": {"kind": "standalone"}},
    "redis.hosts: one server is standalone": _redis(hosts=["a:1", "b:2"]),
    "redis.sentinelMaster is empty": merged(SENTINEL, {"redis": {"sentinelMaster": ""}}),
    "redis.sentinelMaster is only for redis.kind=sentinel": _redis(sentinelMaster="main"),
    "redis.database: a Cluster has no other than 0": merged(CLUSTER, QUEUE, {"redis": {"database": 1}}),
    "jobQueue.redis.hosts is empty: the job queue cannot be in a Cluster": CLUSTER,
    "jobQueue.redis.hosts is empty, so the jobs are in redis": {
        "jobQueue": {"redis": {"existingSecret": "login"}}
    },
    "jobQueue.redis.sentinelMaster is empty": merged(QUEUE, {"jobQueue": {"redis": {"kind": "sentinel"}}}),
    "redis.tls.enabled is false, but": _redis(tls={"existingSecret": "ca"}),
    "redis.tls.clientCertificate needs redis.tls.existingSecret": _redis(
        tls={"enabled": True, "clientCertificate": True}
    ),
    "redis.kind is embedded: hosts, sentinelMaster and tls are for a Redis of your own": {
        "redis": {"hosts": ["r:6379"]}
    },
    "tls.existingSecret is empty: keyPasswordKey and clientAuth": {"tls": {"clientAuth": "require"}},
    "tls.mode is disabled, but tls.existingSecret is given": {
        "tls": {"mode": "disabled", "existingSecret": "tls"}
    },
    "test.clientCertificateSecret is empty, but tls.clientAuth is require": {
        "tls": {"mode": "enforcing", "existingSecret": "tls", "clientAuth": "require"}
    },
    "without metrics of remoting pods most alerts never fire": {"metrics": {"rules": {"enabled": True}}},
    "facts of the store come from HTTP pods": {
        "metrics": {"enabled": True, "rules": {"enabled": True}},
        "http": {"enabled": False},
    },
    "minReplicas is more than maxReplicas": {
        "remoting": {"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}}
    },
    "loadBalancerSourceRanges are only for type=LoadBalancer": {
        "remoting": {"service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}
    },
    "access.existingSecret and access.files are both given": {
        "access": {"existingSecret": "mine", "files": {"access.toml": ""}}
    },
    "access.files has no principals.toml: it is the access file": {
        "access": {"fileKey": "principals.toml", "files": {"access.toml": ""}}
    },
    "tls.clientCaSecret is given, but tls.clientAuth is none": {
        "tls": {"existingSecret": "tls", "clientCaSecret": "ca"}
    },
    "tls.mode is disabled, but test.clientCertificateSecret is given": {
        "tls": {"mode": "disabled"},
        "test": {"clientCertificateSecret": "mine"},
    },
    "options.accessBroker or options.accessRead admits no pod": {"options": {"accessBroker": "signed mtls"}},
    "accessRead admits no pod by its address: give helm test a key": {
        "options": {"accessRead": "net+signed"}
    },
    "options.accessMetrics admits no scraper by its address": {
        "options": {"accessMetrics": "loopback,token"},
        "metrics": {"podMonitor": {"enabled": True}},
    },
    "remoting.service.proxyTrustedCidrs has each peer name its own address": {
        "remoting": {"service": {"proxyTrustedCidrs": ["10.0.0.0/8", "::/0"]}}
    },
    "options.proxyProtocol is false: no PROXY header is read": {
        "options": {"proxyProtocol": False},
        "remoting": {"service": {"proxyTrustedCidrs": ["10.0.0.0/8"]}},
    },
    "remoting.service.type=LoadBalancer with externalTrafficPolicy=Cluster gives all": {
        "remoting": {"service": {"type": "LoadBalancer"}}
    },
    "remoting.service.type=NodePort with externalTrafficPolicy=Cluster gives all": {
        "remoting": {"service": {"type": "NodePort"}}
    },
    "http.service.type=LoadBalancer with externalTrafficPolicy=Cluster gives all": {
        "http": {"service": {"type": "LoadBalancer"}}
    },
    "drift.comparisons: two have one name": merged(DRIFT, {"drift": {"comparisons": [OLD, OLD]}}),
    "drift.comparisons: http.enabled is false": merged(DRIFT, {"http": {"enabled": False}}),
    "drift.tokenSecret is empty": merged(DRIFT, {"drift": {"tokenSecret": ""}}),
    "drift.comparisons: tls.mode is enforcing": merged(
        DRIFT, {"tls": {"mode": "enforcing"}, "test": {"enabled": False}}
    ),
    "drift.comparisons: options.accessRead admits no pod": merged(
        DRIFT, {"options": {"accessRead": "signed"}, "test": {"enabled": False}}
    ),
    "pipeline.spark.executors are only for pipeline.mode=stream": {
        "pipeline": {"mode": "batch", "spark": {"executors": 1}}
    },
    "executors on other nodes need the warehouse, too": merged(
        STREAM, {"pipeline": {"spark": {"executors": 1}}}
    ),
}
"""What goes together, by templates/checks.yaml: words of the refusal -> the values."""


@pytest.mark.parametrize("named", OF_THE_SCHEMA)
def test_a_wrong_value_is_refused_at_its_place(named: str) -> None:
    with pytest.raises(Refused) as refused:
        render(OF_THE_SCHEMA[named])
    place, word = named.split(": ")
    reasons = re.findall(rf"^ *- {re.escape(place)}: (.*)$", _dotted(str(refused.value)), re.MULTILINE)
    assert any(word in reason for reason in reasons)


def _dotted(refusal: str) -> str:
    """Return a refusal of Helm 4 with its places as Helm 3 writes them: `a.b.0` for `at '/a/b/0'`."""
    return re.sub("at '/([^']*)'", lambda match: match[1].replace("/", ".").replace("~1", "/"), refusal)


@pytest.mark.parametrize("words", OF_THE_CHECKS)
def test_values_that_contradict_each_other_are_refused_and_said_why(words: str) -> None:
    with pytest.raises(Refused) as refused:
        render(OF_THE_CHECKS[words])
    assert words in str(refused.value)


BALANCED: dict[str, Any] = {"remoting": {"service": {"type": "LoadBalancer"}}}


def _balanced(**service: Any) -> dict[str, Any]:
    return merged(BALANCED, {"remoting": {"service": service}})


@pytest.mark.parametrize(
    "values",
    [
        *(SENTINEL, merged(CLUSTER, QUEUE), _redis(), STREAM),
        _balanced(externalTrafficPolicy="Local"),
        _balanced(proxyTrustedCidrs=["10.0.0.0/8"]),
        _balanced(loadBalancerSourceRanges=["192.0.2.0/24"]),
        merged(BALANCED, {"options": {"accessBroker": "net signed mtls token"}}),
        merged(BALANCED, {"options": {"accessProfile": "guarded"}}),
        merged(BALANCED, {"options": {"accessMode": "observe"}}),
        {"http": {"enabled": False, "service": {"type": "LoadBalancer"}}},
        {
            "http": {"service": {"type": "NodePort"}},
            "options": {"httpTrustedProxies": "10.0.0.0/8"},
        },
        {"options": {"accessBroker": "signed mtls"}, "test": {"enabled": False}},
        {"options": {"accessBroker": "signed,net+tls"}, "tls": {"mode": "enforcing"}},
    ],
)
def test_what_they_differ_from_is_taken(values: dict[str, Any]) -> None:
    assert render(values)


def test_every_case_is_taken() -> None:
    assert all(render(values) for values in CASES.values())
