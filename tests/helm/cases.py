"""Values by name: each feature on and off, each Redis, and combinations; tests of all objects go through them."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

Values = dict[str, Any]

ACCESS_FILE: Final = """
[principals.mqadmin]
roles = ["operator"]

[[principals.mqadmin.keys]]
accessKey = "mqadmin"
secrets = [{ file = "mqadmin.key" }]
"""
REDIS: Final[dict[str, Values]] = {
    "embedded": {},
    "embedded-kept": {
        "redis": {
            "existingSecret": "login",
            "embedded": {"persistence": {"enabled": True, "storageClass": "fast"}},
        }
    },
    "standalone": {"redis": {"kind": "standalone", "hosts": ["redis.db:6379"], "database": 3}},
    "standalone-tls": {
        "redis": {
            "kind": "standalone",
            "hosts": ["redis.db:6380"],
            "existingSecret": "login",
            "tls": {"enabled": True, "existingSecret": "redis-ca", "clientCertificate": True},
        }
    },
    "sentinel": {
        "redis": {
            "kind": "sentinel",
            "hosts": ["s0.db:26379", "s1.db:26379", "s2.db:26379"],
            "sentinelMaster": "main",
            "existingSecret": "login",
        }
    },
    "sentinel-tls": {
        "redis": {
            "kind": "sentinel",
            "hosts": ["s0.db:26379", "s1.db:26379"],
            "sentinelMaster": "main",
            "database": 1,
            "tls": {"enabled": True},
        }
    },
    "cluster": {
        "redis": {
            "kind": "cluster",
            "hosts": ["c0.db:6379", "c1.db:6379"],
            "existingSecret": "login",
            "tls": {"enabled": True, "existingSecret": "redis-ca"},
        },
        "jobQueue": {
            "redis": {
                "hosts": ["queue.db:6380"],
                "existingSecret": "queue-login",
                "tls": {"enabled": True, "existingSecret": "queue-ca"},
            }
        },
    },
    "cluster-queue-sentinel": {
        "redis": {"kind": "cluster", "hosts": ["c0.db:6379"], "existingSecret": "login"},
        "jobQueue": {
            "redis": {"kind": "sentinel", "hosts": ["s0.db:26379"], "sentinelMaster": "queue", "database": 2}
        },
    },
}
TLS: Final[dict[str, Values]] = {
    "self-signed": {},
    "plain": {"tls": {"mode": "disabled"}},
    "enforcing": {
        "tls": {
            "mode": "enforcing",
            "existingSecret": "namesrv-tls",
            "keyPasswordKey": "password",
            "clientAuth": "require",
        },
        "test": {"clientCertificateSecret": "client-tls"},
    },
}
REMOTING: Final[dict[str, Values]] = {
    "two": {},
    "scaled": {
        "remoting": {
            "autoscaling": {"enabled": True},
            "service": {
                "type": "LoadBalancer",
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "loadBalancerClass": "example.com/lb",
                "externalTrafficPolicy": "Local",
                "annotations": {"example.com/internal": "true"},
                "nodePort": 30876,
            },
        }
    },
}
ALONE: Final[dict[str, Values]] = {
    "no-http": {"http": {"enabled": False}},
    "http-ready-with-store": {
        "http": {
            "readinessPath": "/readyz",
            "service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
        }
    },
    "open-network": {"networkPolicy": {"enabled": False}},
    "closed-network": {
        "networkPolicy": {
            "remotingFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
            "httpFrom": [{"namespaceSelector": {"matchLabels": {"team": "ops"}}}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        }
    },
    "metrics": {
        "metrics": {
            "enabled": True,
            "podMonitor": {"enabled": True, "labels": {"release": "prom"}},
            "rules": {
                "enabled": True,
                "labels": {"release": "prom"},
                "runbookUrl": "https://docs.example/run",
            },
            "dashboard": {"enabled": True},
        },
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "watch"}}}]},
    },
    "no-extras": {
        "podDisruptionBudget": {"enabled": False},
        "serviceAccount": {"create": False},
        "test": {"enabled": False},
    },
    "placed": {
        "commonLabels": {"team": "messaging"},
        "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["registry"]},
        "pods": {
            "annotations": {"example.com/a": "b"},
            "labels": {"tier": "back"},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "arch", "operator": "Exists"}]}]
                    }
                }
            },
            "priorityClassName": "high",
            "extraEnv": [{"name": "TZ", "value": "UTC"}],
        },
        "remoting": {"pods": {"priorityClassName": "higher", "topologySpread": []}},
        "serviceAccount": {"name": "own", "annotations": {"example.com/role": "r"}},
    },
    "node-port": {
        "remoting": {
            "service": {
                "type": "NodePort",
                "nodePort": 30001,
                "port": 19876,
                "externalTrafficPolicy": "Local",
            }
        }
    },
    "principals": {
        "access": {"existingSecret": "namesrv-access", "fileKey": "principals.toml"},
        "options": {
            "accessBroker": "signed mtls",
            "accessRead": "cidr:10.244.0.0/16 signed mtls",
            "accessMetrics": "token",
        },
        "tls": {"existingSecret": "namesrv-tls", "clientAuth": "optional", "clientCaSecret": "client-ca"},
        "metrics": {"enabled": True, "podMonitor": {"enabled": True, "tokenSecret": "scraper"}},
        "test": {"clientCertificateSecret": "client-tls", "accessKeySecret": "test-key"},
    },
    "principals-in-values, balancer": {
        "access": {"files": {"access.toml": ACCESS_FILE, "mqadmin.key": "12345678abcdefgh"}},
        "remoting": {
            "service": {"type": "LoadBalancer", "proxyTrustedCidrs": ["10.9.0.0/16", "fd00:9::/64"]}
        },
    },
    "observed": {
        "options": {"accessMode": "observe"},
        "remoting": {"service": {"type": "NodePort"}},
    },
    "drift": {
        "drift": {
            "comparisons": [
                {"name": "old-1", "address": "10.0.0.1:9876"},
                {"name": "old-2", "address": "[fd00::1]:9876"},
            ],
            "kvNamespaces": ["own"],
            "tokenSecret": "drift-token",
        },
        "metrics": {"enabled": True},
        "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
    },
    "drift, observed": {
        "drift": {"comparisons": [{"name": "old", "address": "old.example:9876"}]},
        "options": {"accessMode": "observe"},
    },
    "batch": {"pipeline": {"mode": "batch", "options": {"SLO": "*=0.9", "RETIRE_AFTER": 604800000}}},
    "batch-elsewhere": {
        "redis": {"kind": "standalone", "hosts": ["redis.db:6379"], "existingSecret": "login"},
        "pipeline": {
            "mode": "batch",
            "existingSecret": "pipeline-login",
            "warehouse": {"url": "s3a://bucket/warehouse"},
        },
    },
    "batch-sentinel-tls": {
        "redis": {
            "kind": "sentinel",
            "hosts": ["s0.db:26379"],
            "sentinelMaster": "main",
            "existingSecret": "login",
            "tls": {"enabled": True, "existingSecret": "redis-ca"},
        },
        "pipeline": {"mode": "batch"},
    },
    "stream": {"pipeline": {"mode": "stream", "warehouse": {"existingClaim": "mine"}}},
    "stream-executors": {
        "pipeline": {
            "mode": "stream",
            "spark": {"executors": 3, "conf": {"spark.sql.shuffle.partitions": "16"}},
            "warehouse": {"accessMode": "ReadWriteMany", "storageClass": "nfs"},
        }
    },
}


def merged(*several: Values) -> Values:
    """Return the values of all; the later ones override."""
    whole: Values = {}
    for values in several:
        for key, value in values.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = merged(whole[key], value) if both else value
    return whole


def _all() -> Iterator[tuple[str, Values]]:
    for (redis, a), (tls, b), (remoting, c) in product(REDIS.items(), TLS.items(), REMOTING.items()):
        yield f"{redis}, {tls}, {remoting}", merged(a, b, c)
    yield from ALONE.items()


CASES: Final = dict(_all())
