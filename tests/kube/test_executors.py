"""Executors as pods, by the manifests of mqpipeline/kubernetes/: the same tables as on one machine, in shared S3."""

import os
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
import redis as redis_py
import yaml
from deltalake import DeltaTable

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake import reading
from pyspark_redis_stream.streams import Streams
from testbed.eventually import eventually
from testbed.s3 import BUCKET, S3, s3
from tests.helm.chart import ROOT
from tests.kube.cluster import Namespace
from tests.kube.executors import SPARK, Executors, image
from tests.mqpipeline.any_spark import AS_OF_MS, OF_USERS, hadoop_jars, in_s3, run, session, write_histories

MANIFESTS: Final = ROOT / "mqpipeline/kubernetes"
ACCOUNT: Final = "redis-namesrv-pipeline"
POD: Final = MANIFESTS / "spark-pod.yaml"
INSTANCES: Final = 2
WAREHOUSE: Final = "pods"
PODS_S: Final = 60.0
RUN_S: Final = 600.0


@pytest.fixture
def account(namespace: Namespace) -> Namespace:
    """A namespace with what docs/pipeline.md applies and creates before it submits."""
    for name in ("account.yaml", "options.yaml"):
        namespace.kubectl("apply", "--server-side", f"--filename={MANIFESTS / name}")
    url = "--from-literal=REDIS_URL=redis://redis:6379"
    namespace.kubectl("create", "secret", "generic", "redis-namesrv-redis", url)
    return namespace


@pytest.mark.timeout(1200)
def test_executors_as_pods_make_the_same_tables_and_a_lost_one_is_replaced(
    account: Namespace,
    store: EmbeddedStore,
    redis: redis_py.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Streams, "now_ms", lambda *_: AS_OF_MS)
    write_histories(redis)
    jars = f"{hadoop_jars()}/*"
    with session("local[1]", {"spark.driver.extraClassPath": jars}, partitions=1) as spark:
        here = run(spark, store, str(tmp_path / "here"))
    monkeypatch.setattr(reading, "FILES_MOST", 0)  # tasks read all files
    with s3(tmp_path) as bucket, Executors(account, tmp_path).running() as executors:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        settings = {**OF_USERS, **in_s3(bucket, jars), **as_pods(account)}
        with (
            session(f"k8s://https://{address(account)}", settings, partitions=4 * INSTANCES) as spark,
            ThreadPoolExecutor(1) as pool,
        ):
            lost = pool.submit(lose_one_when_landed, executors, bucket)
            on_pods = run(spark, store, f"s3a://{BUCKET}/{WAREHOUSE}")
            lost.result()
            eventually(lambda: len(executors.pods) == INSTANCES + 1, PODS_S)
        eventually(lambda: not account.get("pods", "--selector=spark-role=executor"), PODS_S)
    assert on_pods == here


def test_the_documented_command_submits_a_driver_that_restricted_admits(
    account: Namespace, tmp_path: Path
) -> None:
    places = {
        "$KUBERNETES": address(account),
        "$NAMESPACE": account.name,
        "=mqpipeline/": f"={ROOT}/mqpipeline/",
    }
    command = documented_command()
    for name, value in places.items():
        command = command.replace(name, value)
    environment = os.environ | image() | {"KUBECONFIG": str(account.cluster.kubeconfig)}
    program, *options = shlex.split(command)
    submit = [
        f"{SPARK}/bin/{program}",
        "--conf",
        "spark.kubernetes.submission.waitAppCompletion=false",
        *options,
    ]
    done = subprocess.run(submit, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (driver,) = account.get("pods", "--selector=spark-role=driver")
    (container,) = driver["spec"]["containers"]
    assert driver["spec"]["serviceAccountName"] == ACCOUNT
    assert driver["metadata"]["labels"]["app.kubernetes.io/component"] == "pipeline"
    assert container["args"][-3:] == ["run", "--warehouse", "s3a://bucket/warehouse"]
    assert {"configMapRef", "secretRef"} == {kind for source in container["envFrom"] for kind in source}


def documented_command() -> str:
    """Return the command of docs/pipeline.md, as one line."""
    lines = (ROOT / "docs/pipeline.md").read_text().replace("\\\n", " ").splitlines()
    (command,) = (line for line in lines if line.startswith("$ spark-submit --master k8s://"))
    return command.removeprefix("$ ")


def lose_one_when_landed(executors: Executors, bucket: S3) -> None:
    """Lose an executor as soon as tasks have written the landed events, and tables wait to be computed."""
    events = f"s3://{BUCKET}/{WAREHOUSE}/events"
    eventually(lambda: DeltaTable.is_deltatable(events, dict(bucket.environment)), RUN_S)
    executors.kill(min(executors.pods))


def address(namespace: Namespace) -> str:
    """Return the host and port of the API server."""
    return str(_cluster_of(namespace)["server"]).removeprefix("https://")


def as_pods(namespace: Namespace) -> dict[str, str]:
    """Return what docs/pipeline.md gives spark-submit, and how a driver outside of the cluster proves its account."""
    return {
        "spark.executor.instances": str(INSTANCES),
        "spark.executor.cores": "1",
        "spark.kubernetes.namespace": namespace.name,
        "spark.kubernetes.container.image": "redis-namesrv-pipeline:0.1.0",
        "spark.kubernetes.authenticate.caCertFile": _cluster_of(namespace)["certificate-authority"],
        "spark.kubernetes.authenticate.oauthToken": namespace.kubectl("create", "token", ACCOUNT).strip(),
        "spark.kubernetes.authenticate.executor.serviceAccountName": "default",
        "spark.kubernetes.executor.podTemplateFile": str(POD),
    }


def _cluster_of(namespace: Namespace) -> dict[str, str]:
    config: Any = yaml.safe_load(namespace.cluster.kubeconfig.read_text())
    (named,) = config["clusters"]
    return dict(named["cluster"])
