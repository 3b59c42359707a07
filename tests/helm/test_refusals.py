"""Values that Helm refuses before anything is sent to a cluster, with its errors."""

from typing import Any

import pytest

from tests.helm.cases import CASES, merged
from tests.helm.chart import Refused, render

SENTINEL = {"redis": {"kind": "sentinel", "hosts": ["s:26379"], "sentinelMaster": "main"}}
CLUSTER = {"redis": {"kind": "cluster", "hosts": ["c:6379"]}}
QUEUE = {"jobQueue": {"redis": {"hosts": ["q:6379"]}}}
STREAM = {"pipeline": {"mode": "stream"}}


def _redis(**more: Any) -> dict[str, Any]:
    return {"redis": {"kind": "standalone", "hosts": ["r:6379"], **more}}


WRONG: dict[str, dict[str, Any]] = {
    # names and types: values.schema.json
    "additional properties 'replica' not allowed": {"remoting": {"replica": 3}},
    "additional properties 'autoscalling' not allowed": {"remoting": {"autoscalling": {"enabled": True}}},
    "additional properties 'remotingWorker' not allowed": {"options": {"remotingWorker": 2}},
    "additional properties 'listenPort' not allowed": {"options": {"listenPort": 9877}},
    "additional properties 'redisUrl' not allowed": {"options": {"redisUrl": "redis://u:p@h"}},
    "additional properties 'tls.server.mode' not allowed": {"options": {"tls.server.mode": "enforcing"}},
    "at '/options/remotingWorkers': minimum: got 0, want 1": {"options": {"remotingWorkers": 0}},
    "at '/options/clusterTest': got string, want boolean": {"options": {"clusterTest": "true"}},
    "at '/options/waitSecondsForService': maximum": {"options": {"waitSecondsForService": 1 << 31}},
    "at '/redis/kind': value must be one of 'embedded', 'standalone', 'sentinel', 'cluster'": {
        "redis": {"kind": "valkey"}
    },
    "at '/redis/hosts/0': 'redis.db' does not match pattern": _redis(hosts=["redis.db"]),
    "at '/redis/hosts/0': 'user:secret@redis.db:6379' does not match": _redis(
        hosts=["user:secret@redis.db:6379"]
    ),
    "at '/redis/existingSecret': got object, want string": _redis(existingSecret={"name": "login"}),
    "at '/remoting/replicas': got string, want integer": {"remoting": {"replicas": "2"}},
    "at '/remoting/preStopSleepSeconds': minimum: got 0, want 1": {"remoting": {"preStopSleepSeconds": 0}},
    "at '/remoting/service/type': value must be one of": {"remoting": {"service": {"type": "ExternalName"}}},
    "at '/http/readinessPath': value must be one of '/healthz', '/readyz'": {
        "http": {"readinessPath": "/health"}
    },
    "at '/podDisruptionBudget/maxUnavailable'": {"podDisruptionBudget": {"maxUnavailable": 0}},
    "at '/pods/topologySpread/0': missing property 'whenUnsatisfiable'": {
        "pods": {"topologySpread": [{"topologyKey": "zone", "maxSkew": 1}]}
    },
    "additional properties 'labelSelector' not allowed": {
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
    "at '/pods/labels/app.kubernetes.io~1instance': false schema": {
        "pods": {"labels": {"app.kubernetes.io/instance": "other"}}
    },
    "at '/image/digest': 'latest' does not match pattern": {"image": {"digest": "latest"}},
    "at '/pipeline/mode': value must be one of 'none', 'batch', 'stream'": {"pipeline": {"mode": "hourly"}},
    "additional properties 'URL' not allowed": {"pipeline": {"options": {"URL": "redis://r"}}},
    "at '/pipeline/options/FORMAT': value must be one of 'parquet', 'delta'": {
        "pipeline": {"options": {"FORMAT": "csv"}}
    },
    "at '/tls/clientAuth': value must be one of 'none', 'optional', 'require'": {
        "tls": {"clientAuth": "required"}
    },
    # what goes together: templates/checks.yaml
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
    "minReplicas is more than maxReplicas": {
        "remoting": {"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}}
    },
    "loadBalancerSourceRanges are only for type=LoadBalancer": {
        "remoting": {"service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}
    },
    "pipeline.spark.executors are only for pipeline.mode=stream": {
        "pipeline": {"mode": "batch", "spark": {"executors": 1}}
    },
    "executors on other nodes need the warehouse, too": merged(
        STREAM, {"pipeline": {"spark": {"executors": 1}}}
    ),
}
"""Words of the refusal -> the values."""


@pytest.mark.parametrize("words", WRONG)
def test_it_is_refused_and_said_why(words: str) -> None:
    with pytest.raises(Refused) as refused:
        render(WRONG[words])
    assert words in str(refused.value)


@pytest.mark.parametrize("values", [SENTINEL, merged(CLUSTER, QUEUE), _redis(), STREAM])
def test_what_they_differ_from_is_taken(values: dict[str, Any]) -> None:
    assert render(values)


def test_every_case_is_taken() -> None:
    assert all(render(values) for values in CASES.values())
