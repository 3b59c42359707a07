"""Values and the objects they make: values, object, path in it, expected value; None without one."""

from base64 import b64encode
from typing import Any

import pytest

from tests.helm.cases import ACCESS_FILE, CASES, merged
from tests.helm.chart import COMPONENTS, at, environment, find, names, render

Row = tuple[Any, str, str, Any]
BALANCED = CASES["embedded, self-signed, scaled"]
ENFORCING = CASES["embedded, enforcing, two"]
PLACED = CASES["placed"]
CLOSED = CASES["closed-network"]
MEASURED = CASES["metrics"]
CONTAINER = "spec template spec containers 0"
EXPORTER = "spec template spec containers 1"
REMOTING, HTTP = "Deployment mq-remoting", "Deployment mq-http"
JOBS, SCHEDULER = "Deployment mq-jobs", "Deployment mq-scheduler"
REDIS, PIPELINE = "StatefulSet mq-redis", "Deployment mq-pipeline"
CRON = "CronJob mq-pipeline"
JOB_POD = "spec jobTemplate spec template spec"
SERVICE = "Service mq-remoting"
TEST = "Pod mq-test-wire"
DRIFT, COMPARED = "Deployment mq-drift", CASES["drift"]
KNOWN = CASES["principals"]
IN_VALUES = CASES["principals-in-values, balancer"]
OURS = {"app.kubernetes.io/name": "redis-namesrv", "app.kubernetes.io/instance": "mq"}


def options(**values: Any) -> dict[str, Any]:
    return {"options": values}


ROWS: list[Row] = [
    # what clients learn whose only setting is the HTTP side's address
    (
        {},
        HTTP,
        f"{CONTAINER} env MQNS_DISCOVERY_ADDRESS value",
        "mq-remoting.rocketmq.svc.cluster.local:9876",
    ),
    (
        {"remoting": {"service": {"port": 19876}}, "clusterDomain": "k8s.example"},
        HTTP,
        f"{CONTAINER} env MQNS_DISCOVERY_ADDRESS value",
        "mq-remoting.rocketmq.svc.k8s.example:19876",
    ),
    (
        options(discoveryAddress="192.0.2.1:9876"),
        HTTP,
        f"{CONTAINER} env MQNS_DISCOVERY_ADDRESS value",
        "192.0.2.1:9876",
    ),
    (options(discoveryUnits="blue=b:1"), HTTP, f"{CONTAINER} env MQNS_DISCOVERY_UNITS value", "blue=b:1"),
    ({}, REMOTING, f"{CONTAINER} env MQNS_DISCOVERY_ADDRESS", None),
    (
        {},
        REMOTING,
        f"{CONTAINER} env MQNS_ADVERTISE_ADDRESS valueFrom fieldRef fieldPath",
        "status.podIP",
    ),
    # workloads
    ({}, REMOTING, "spec replicas", 2),
    ({"remoting": {"replicas": 5}}, REMOTING, "spec replicas", 5),
    (BALANCED, REMOTING, "spec replicas", None),
    ({}, REMOTING, f"{CONTAINER} image", "redis-namesrv:0.1.0"),
    ({"image": {"repository": "r.io/ns", "tag": "9"}}, HTTP, f"{CONTAINER} image", "r.io/ns:9"),
    (PLACED, JOBS, f"{CONTAINER} image", "redis-namesrv@sha256:" + "0" * 64),
    ({"image": {"pullPolicy": "Always"}}, JOBS, f"{CONTAINER} imagePullPolicy", "Always"),
    (PLACED, HTTP, "spec template spec imagePullSecrets 0 name", "registry"),
    (
        {"jobs": {"resources": {"limits": {"memory": "1Gi"}}}},
        JOBS,
        f"{CONTAINER} resources limits memory",
        "1Gi",
    ),
    ({}, REMOTING, f"{CONTAINER} resources limits cpu", None),
    ({}, REMOTING, "spec strategy rollingUpdate maxUnavailable", 0),
    # the end of a pod: sleep + drain + 3 + 5
    ({}, REMOTING, "spec template spec terminationGracePeriodSeconds", 43),
    (options(shutdownWaitTimeSeconds=60), REMOTING, "spec template spec terminationGracePeriodSeconds", 73),
    (options(shutdownWaitTimeSeconds=None), REMOTING, "spec template spec terminationGracePeriodSeconds", 43),
    (
        {"remoting": {"preStopSleepSeconds": 20}},
        REMOTING,
        "spec template spec terminationGracePeriodSeconds",
        58,
    ),
    ({"remoting": {"preStopSleepSeconds": 20}}, REMOTING, f"{CONTAINER} lifecycle preStop sleep seconds", 20),
    ({"http": {"preStopSleepSeconds": 9}}, HTTP, f"{CONTAINER} lifecycle preStop sleep seconds", 9),
    ({"http": {"preStopSleepSeconds": 9}}, HTTP, "spec template spec terminationGracePeriodSeconds", 19),
    # probes: none asks Redis
    ({}, REMOTING, f"{CONTAINER} startupProbe exec command", ["python", "-m", "mqnamesrv.probe", "remoting"]),
    (
        {},
        REMOTING,
        f"{CONTAINER} readinessProbe exec command",
        ["python", "-m", "mqnamesrv.probe", "remoting"],
    ),
    ({}, REMOTING, f"{CONTAINER} livenessProbe tcpSocket port", "remoting"),
    ({}, HTTP, f"{CONTAINER} livenessProbe tcpSocket port", "http"),
    ({}, HTTP, f"{CONTAINER} readinessProbe httpGet path", "/healthz"),
    ({"http": {"readinessPath": "/readyz"}}, HTTP, f"{CONTAINER} readinessProbe httpGet path", "/readyz"),
    ({"http": {"readinessPath": "/readyz"}}, HTTP, f"{CONTAINER} startupProbe httpGet path", "/healthz"),
    ({}, JOBS, f"{CONTAINER} livenessProbe exec command", ["python", "-m", "mqnamesrv.probe", "beat"]),
    ({}, SCHEDULER, f"{CONTAINER} livenessProbe exec command", ["python", "-m", "mqnamesrv.probe", "beat"]),
    # metrics
    ({}, REMOTING, EXPORTER, None),
    ({}, REMOTING, f"{CONTAINER} env PROMETHEUS_MULTIPROC_DIR value", "/metrics"),
    ({}, HTTP, f"{CONTAINER} env PROMETHEUS_MULTIPROC_DIR value", "/metrics"),
    *(
        (MEASURED, workload, f"{EXPORTER} command 3", "api.exporter:app")
        for workload in (REMOTING, JOBS, SCHEDULER)
    ),
    (MEASURED, HTTP, EXPORTER, None),
    (MEASURED, JOBS, f"{EXPORTER} ports 0 containerPort", 9464),
    (MEASURED, JOBS, f"{EXPORTER} securityContext readOnlyRootFilesystem", True),
    (MEASURED, "PodMonitor mq-metrics", "metadata labels release", "prom"),
    (MEASURED, "PodMonitor mq-metrics", "spec podMetricsEndpoints 1 port", "metrics"),
    (MEASURED, "PrometheusRule mq-metrics", "metadata labels release", "prom"),
    (MEASURED, "ConfigMap mq-dashboard", "metadata labels grafana_dashboard", "1"),
    (
        MEASURED,
        "NetworkPolicy mq-jobs",
        "spec ingress 0 from 0 namespaceSelector matchLabels team",
        "watch",
    ),
    (MEASURED, "NetworkPolicy mq-remoting", "spec ingress 1 ports 0 port", "metrics"),
    ({}, "NetworkPolicy mq-jobs", "spec ingress", None),
    # where pods run
    ({}, HTTP, "spec template spec topologySpreadConstraints 0 whenUnsatisfiable", "ScheduleAnyway"),
    ({}, HTTP, "spec template spec topologySpreadConstraints 1 topologyKey", "topology.kubernetes.io/zone"),
    (PLACED, REMOTING, "spec template spec topologySpreadConstraints", None),
    (PLACED, REMOTING, "spec template spec priorityClassName", "higher"),
    (PLACED, REMOTING, "spec template spec nodeSelector", {"disk": "ssd"}),
    (PLACED, HTTP, "spec template spec priorityClassName", "high"),
    (PLACED, HTTP, "spec template spec tolerations 0 key", "dedicated"),
    (PLACED, HTTP, "spec template metadata annotations example.com/a", "b"),
    (PLACED, HTTP, "spec template metadata labels tier", "back"),
    (PLACED, HTTP, "spec template metadata labels team", "messaging"),
    (PLACED, HTTP, "spec selector matchLabels team", None),
    (PLACED, HTTP, f"{CONTAINER} env TZ value", "UTC"),
    (PLACED, REDIS, "spec template spec nodeSelector", {"disk": "ssd"}),
    (PLACED, TEST, "spec tolerations 0 key", "dedicated"),
    (PLACED, SERVICE, "metadata labels team", "messaging"),
    (PLACED, HTTP, "spec template spec serviceAccountName", "own"),
    (PLACED, "ServiceAccount own", "metadata annotations", {"example.com/role": "r"}),
    ({"serviceAccount": {"create": False}}, HTTP, "spec template spec serviceAccountName", "default"),
    # services
    ({}, SERVICE, "spec type", "ClusterIP"),
    ({}, SERVICE, "spec ports 0 port", 9876),
    ({}, SERVICE, "spec externalTrafficPolicy", None),
    (BALANCED, SERVICE, "spec type", "LoadBalancer"),
    (BALANCED, SERVICE, "spec externalTrafficPolicy", "Local"),
    (BALANCED, SERVICE, "spec loadBalancerSourceRanges", ["10.0.0.0/8"]),
    (BALANCED, SERVICE, "spec loadBalancerClass", "example.com/lb"),
    (BALANCED, SERVICE, "spec ports 0 nodePort", 30876),
    (BALANCED, SERVICE, "metadata annotations", {"example.com/internal": "true"}),
    (
        CASES["node-port"],
        SERVICE,
        "spec ports 0",
        {"name": "remoting", "port": 19876, "targetPort": "remoting", "nodePort": 30001},
    ),
    ({}, "Service mq-remoting-pods", "spec clusterIP", "None"),
    (CASES["node-port"], "Service mq-remoting-pods", "spec ports 0 port", 9876),
    ({}, "Service mq-http", "spec ports 0 port", 8080),
    ({}, "Service mq-http", "spec externalTrafficPolicy", None),
    (CASES["http-ready-with-store"], "Service mq-http", "spec externalTrafficPolicy", "Local"),
    # scaling and disruptions
    (BALANCED, "HorizontalPodAutoscaler mq-remoting", "spec minReplicas", 2),
    (BALANCED, "HorizontalPodAutoscaler mq-remoting", "spec scaleTargetRef name", "mq-remoting"),
    (
        BALANCED,
        "HorizontalPodAutoscaler mq-remoting",
        "spec metrics 0 resource target averageUtilization",
        70,
    ),
    ({}, "PodDisruptionBudget mq-scheduler", "spec maxUnavailable", 1),
    (
        {"podDisruptionBudget": {"maxUnavailable": "50%"}},
        "PodDisruptionBudget mq-http",
        "spec maxUnavailable",
        "50%",
    ),
    # networks
    ({}, "NetworkPolicy mq-remoting", "spec ingress 0 ports 0 port", "remoting"),
    ({}, "NetworkPolicy mq-remoting", "spec ingress 0 from", None),
    ({}, "NetworkPolicy mq-remoting", "spec policyTypes", ["Ingress"]),
    ({}, "NetworkPolicy mq-jobs", "spec ingress", None),
    ({}, "NetworkPolicy mq-redis", "spec ingress 0 from", [{"podSelector": {"matchLabels": OURS}}]),
    ({}, "NetworkPolicy mq-redis", "spec policyTypes", ["Ingress", "Egress"]),
    ({}, "NetworkPolicy mq-redis", "spec egress", None),
    (
        CLOSED,
        "NetworkPolicy mq-remoting",
        "spec ingress 0 from",
        [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"podSelector": {"matchLabels": OURS}}],
    ),
    (CLOSED, "NetworkPolicy mq-http", "spec ingress 0 from 0 namespaceSelector matchLabels team", "ops"),
    (CLOSED, "NetworkPolicy mq-jobs", "spec policyTypes", ["Ingress", "Egress"]),
    (CLOSED, "NetworkPolicy mq-jobs", "spec egress 0 ports 0 port", 53),
    (
        CLOSED,
        "NetworkPolicy mq-jobs",
        "spec egress 1 to 0 podSelector matchLabels app.kubernetes.io/component",
        "redis",
    ),
    (CLOSED, "NetworkPolicy mq-jobs", "spec egress 2 to 0 ipBlock cidr", "10.0.0.0/8"),
    # comparisons with other name servers
    (COMPARED, DRIFT, "spec replicas", 1),
    (COMPARED, DRIFT, "spec template spec containers old-2 command 2", "[fd00::1]:9876"),
    (
        COMPARED,
        DRIFT,
        "spec template spec containers old-1 env MQNS_TOKEN valueFrom secretKeyRef",
        {"name": "drift-token", "key": "token"},
    ),
    (
        merged(COMPARED, {"drift": {"pods": {"extraEnv": [{"name": "TZ", "value": "UTC"}]}}}),
        DRIFT,
        f"{CONTAINER} env TZ value",
        "UTC",
    ),
    (CASES["drift, observed"], DRIFT, f"{CONTAINER} env", None),
    (COMPARED, "NetworkPolicy mq-drift", "spec ingress", None),
    (
        COMPARED,
        "NetworkPolicy mq-drift",
        "spec egress 2 to 1 podSelector matchLabels app.kubernetes.io/component",
        "http",
    ),
    (COMPARED, "NetworkPolicy mq-drift", "spec egress 3 to 0 ipBlock cidr", "10.0.0.0/8"),
    # TLS of the remoting port
    (ENFORCING, REMOTING, "spec template spec volumes tls secret secretName", "namesrv-tls"),
    (
        ENFORCING,
        REMOTING,
        f"{CONTAINER} volumeMounts tls",
        {"name": "tls", "mountPath": "/etc/namesrv-tls", "readOnly": True},
    ),
    (ENFORCING, HTTP, "spec template spec volumes tls", None),
    (KNOWN, REMOTING, "spec template spec volumes client-ca secret secretName", "client-ca"),
    (
        KNOWN,
        REMOTING,
        f"{CONTAINER} env MQNS_TLS_SERVER_TRUST_CERT_PATH value",
        "/etc/namesrv-client-ca/ca.crt",
    ),
    # access
    ({}, REMOTING, f"{CONTAINER} env MQNS_ACCESS_PROFILE value", "secure"),
    ({}, HTTP, f"{CONTAINER} env MQNS_ACCESS_MODE value", "enforce"),
    ({}, HTTP, f"{CONTAINER} env MQNS_ACCESS_FILE", None),
    ({}, HTTP, "spec template spec volumes access", None),
    ({}, REMOTING, f"{CONTAINER} env MQNS_PROXY_REQUIRED", None),
    (KNOWN, REMOTING, f"{CONTAINER} env MQNS_ACCESS_FILE value", "/etc/namesrv-access/principals.toml"),
    (KNOWN, HTTP, "spec template spec volumes access secret secretName", "namesrv-access"),
    (KNOWN, HTTP, "spec template metadata annotations", None),
    (KNOWN, JOBS, f"{CONTAINER} volumeMounts access", None),
    (KNOWN, JOBS, f"{EXPORTER} volumeMounts access readOnly", True),
    (MEASURED, JOBS, f"{EXPORTER} env MQNS_ACCESS_PROFILE value", "secure"),
    (KNOWN, JOBS, f"{EXPORTER} env MQNS_ACCESS_METRICS value", "token"),
    (KNOWN, JOBS, f"{EXPORTER} env MQNS_ACCESS_BROKER", None),
    (
        KNOWN,
        "PodMonitor mq-metrics",
        "spec podMetricsEndpoints 1 authorization credentials",
        {"name": "scraper", "key": "token"},
    ),
    (MEASURED, "PodMonitor mq-metrics", "spec podMetricsEndpoints 0 authorization", None),
    (IN_VALUES, HTTP, "spec template spec volumes access secret secretName", "mq-access"),
    (IN_VALUES, JOBS, "spec template spec volumes access", None),
    (IN_VALUES, "Secret mq-access", "data mqadmin.key", b64encode(b"12345678abcdefgh").decode()),
    (IN_VALUES, "Secret mq-access", "data access.toml", b64encode(ACCESS_FILE.encode()).decode()),
    (
        KNOWN,
        TEST,
        "spec containers wire env MQNS_SECRET_KEY valueFrom secretKeyRef",
        {"name": "test-key", "key": "secret-key"},
    ),
    # the embedded Redis
    ({}, REDIS, f"{CONTAINER} image", "redis:7.4"),
    ({}, REDIS, "spec volumeClaimTemplates", None),
    ({}, REDIS, "spec template spec volumes data emptyDir", {}),
    (CASES["embedded-kept, plain, two"], REDIS, "spec volumeClaimTemplates 0 spec storageClassName", "fast"),
    (CASES["embedded-kept, plain, two"], REDIS, "spec template spec volumes data", None),
    # the pipeline
    (CASES["batch"], CRON, "spec schedule", "7 * * * *"),
    (CASES["batch"], CRON, "spec concurrencyPolicy", "Forbid"),
    (CASES["batch"], CRON, f"{JOB_POD} containers 0 args", ["mqpipeline", "run"]),
    (CASES["batch"], CRON, f"{JOB_POD} containers 0 image", "redis-namesrv-pipeline:0.1.0"),
    (CASES["batch"], CRON, f"{JOB_POD} containers 0 env MQNS_PIPELINE_RETIRE_AFTER value", "604800000"),
    (CASES["batch"], CRON, f"{JOB_POD} volumes warehouse persistentVolumeClaim claimName", "mq-warehouse"),
    (
        CASES["batch"],
        "PersistentVolumeClaim mq-warehouse",
        "metadata annotations helm.sh/resource-policy",
        "keep",
    ),
    (CASES["batch-elsewhere"], CRON, f"{JOB_POD} volumes warehouse", None),
    (
        CASES["batch-elsewhere"],
        CRON,
        f"{JOB_POD} containers 0 env MQNS_PIPELINE_PASSWORD valueFrom secretKeyRef",
        {"name": "pipeline-login", "key": "password"},
    ),
    (CASES["batch-elsewhere"], CRON, f"{JOB_POD} containers 0 env MQNS_PIPELINE_SENTINEL_PASSWORD", None),
    (
        CASES["batch-sentinel-tls"],
        CRON,
        f"{JOB_POD} containers 0 env MQNS_PIPELINE_SENTINEL_PASSWORD valueFrom secretKeyRef name",
        "login",
    ),
    (CASES["batch-sentinel-tls"], CRON, f"{JOB_POD} volumes redis-tls secret secretName", "redis-ca"),
    (CASES["batch"], CRON, f"{JOB_POD} containers 0 env MQNS_PIPELINE_PASSWORD", None),
    (CASES["stream"], PIPELINE, "spec strategy type", "Recreate"),
    (
        CASES["stream"],
        PIPELINE,
        "spec template spec volumes warehouse persistentVolumeClaim claimName",
        "mine",
    ),
    (CASES["stream"], PIPELINE, "spec template spec automountServiceAccountToken", False),
    (CASES["stream-executors"], PIPELINE, "spec template spec serviceAccountName", "mq-pipeline"),
    (CASES["stream-executors"], "RoleBinding mq-pipeline", "subjects 0 namespace", "rocketmq"),
    (CASES["stream-executors"], "PersistentVolumeClaim mq-warehouse", "spec storageClassName", "nfs"),
    # helm test
    ({}, TEST, "metadata annotations helm.sh/hook", "test"),
    (ENFORCING, TEST, "spec volumes client-tls secret secretName", "client-tls"),
]


@pytest.mark.parametrize(("values", "what", "path", "expected"), ROWS, ids=lambda value: str(value)[-60:])
def test_row(values: Any, what: str, path: str, expected: Any) -> None:
    assert at(find(render(values), *what.split()), path) == expected


URLS: list[tuple[str, dict[str, Any]]] = [
    ("embedded", {"MQNS_REDIS_URL": "redis://mq-redis:6379/0"}),
    ("standalone", {"MQNS_REDIS_URL": "redis://redis.db:6379/3"}),
    (
        "standalone-tls",
        {
            "MQNS_REDIS_URL": "rediss://redis.db:6380/0?ssl_ca_certs=/etc/redis-tls/ca.crt"
            "&ssl_certfile=/etc/redis-tls/tls.crt&ssl_keyfile=/etc/redis-tls/tls.key",
            "MQNS_REDIS_USERNAME": ("login", "username", True),
            "MQNS_REDIS_PASSWORD": ("login", "password", None),
        },
    ),
    (
        "sentinel",
        {
            "MQNS_REDIS_URL": "redis+sentinel://s0.db:26379,s1.db:26379,s2.db:26379/main/0",
            "MQNS_REDIS_USERNAME": ("login", "username", True),
            "MQNS_REDIS_PASSWORD": ("login", "password", None),
            "MQNS_REDIS_SENTINEL_USERNAME": ("login", "sentinel-username", True),
            "MQNS_REDIS_SENTINEL_PASSWORD": ("login", "sentinel-password", True),
        },
    ),
    ("sentinel-tls", {"MQNS_REDIS_URL": "rediss+sentinel://s0.db:26379,s1.db:26379/main/1"}),
    (
        "cluster",
        {
            "MQNS_REDIS_URL": "rediss+cluster://c0.db:6379,c1.db:6379?ssl_ca_certs=/etc/redis-tls/ca.crt",
            "MQNS_REDIS_USERNAME": ("login", "username", True),
            "MQNS_REDIS_PASSWORD": ("login", "password", None),
            "MQNS_RQ_REDIS_URL": "rediss://queue.db:6380/0?ssl_ca_certs=/etc/redis-queue-tls/ca.crt",
            "MQNS_RQ_REDIS_USERNAME": ("queue-login", "username", True),
            "MQNS_RQ_REDIS_PASSWORD": ("queue-login", "password", None),
        },
    ),
    (
        "cluster-queue-sentinel",
        {
            "MQNS_REDIS_URL": "redis+cluster://c0.db:6379",
            "MQNS_REDIS_USERNAME": ("login", "username", True),
            "MQNS_REDIS_PASSWORD": ("login", "password", None),
            "MQNS_REDIS_SENTINEL_USERNAME": ("login", "sentinel-username", True),
            "MQNS_REDIS_SENTINEL_PASSWORD": ("login", "sentinel-password", True),
            "MQNS_RQ_REDIS_URL": "redis+sentinel://s0.db:26379/queue/2",
        },
    ),
]
"""Redis of cases -> variables of all pods; (secret, key, optional) for those from a secret."""


@pytest.mark.parametrize(("case", "expected"), URLS, ids=[case for case, _ in URLS])
@pytest.mark.parametrize("component", COMPONENTS)
def test_every_pod_has_the_address_of_redis(component: str, case: str, expected: dict[str, Any]) -> None:
    variables = environment(find(render(CASES[f"{case}, plain, two"]), "Deployment", f"mq-{component}"))
    redis = {name: value for name, value in variables.items() if "REDIS" in name}
    refs = {
        name: (
            value["secretKeyRef"]["name"],
            value["secretKeyRef"]["key"],
            value["secretKeyRef"].get("optional"),
        )
        for name, value in redis.items()
        if isinstance(value, dict)
    }
    assert redis | refs == expected


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_pod_has_the_files_that_its_urls_name(component: str) -> None:
    deployment = find(render(CASES["cluster, plain, two"]), "Deployment", f"mq-{component}")
    mounted = {
        mount["mountPath"]: at(deployment, f"spec template spec volumes {mount['name']} secret secretName")
        for mount in at(deployment, f"{CONTAINER} volumeMounts")
    }
    assert mounted == {
        "/tmp": None,
        "/metrics": None,
        "/etc/redis-tls": "redis-ca",
        "/etc/redis-queue-tls": "queue-ca",
    }


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ({}, "Deployment", ["mq-http", "mq-jobs", "mq-remoting", "mq-scheduler"]),
        (CASES["no-http"], "Deployment", ["mq-jobs", "mq-remoting", "mq-scheduler"]),
        (CASES["no-http"], "Service", ["mq-redis", "mq-remoting", "mq-remoting-pods"]),
        (CASES["no-http"], "PodDisruptionBudget", ["mq-jobs", "mq-remoting", "mq-scheduler"]),
        (CASES["no-http"], "NetworkPolicy", ["mq-jobs", "mq-redis", "mq-remoting", "mq-scheduler"]),
        ({}, "StatefulSet", ["mq-redis"]),
        (CASES["standalone, plain, two"], "StatefulSet", []),
        ({}, "HorizontalPodAutoscaler", []),
        (CASES["no-extras"], "PodDisruptionBudget", []),
        (CASES["no-extras"], "ServiceAccount", []),
        (CASES["no-extras"], "Pod", []),
        (CASES["open-network"], "NetworkPolicy", []),
        ({}, "CronJob", []),
        ({}, "PrometheusRule", []),
        ({}, "ConfigMap", []),
        ({}, "PersistentVolumeClaim", []),
        (CASES["stream"], "PersistentVolumeClaim", []),
        (CASES["stream"], "CronJob", []),
        (merged(CASES["stream-executors"], CASES["open-network"]), "NetworkPolicy", []),
    ],
)
def test_what_there_is(values: Any, kind: str, expected: list[str]) -> None:
    assert names(render(values), kind) == expected


def test_no_pod_compares_where_nothing_is_to_be_compared() -> None:
    for kind in ("Deployment", "NetworkPolicy"):
        assert "mq-drift" not in names(render(), kind)
        assert "mq-drift" in names(render(COMPARED), kind)
