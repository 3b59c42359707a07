"""A control plane for all tests, and a namespace for each."""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helm.chart import ROOT
from tests.kube.cluster import RESTRICTED, Cluster, Namespace
from tests.kube.processes import PROGRAMS

BIN = Path(os.environ.get("KUBE_BIN", ROOT / "build/kube/bin"))
NODES = 3
NewNamespace = Callable[[], Namespace]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three simulated nodes in three zones."""
    script = str(ROOT / "tests/kube/control_plane.sh")
    command = [script, str(BIN), str(tmp_path_factory.mktemp("kube")), str(NODES)]
    env = os.environ | {"PATH": PROGRAMS}  # of what `kubectl exec` starts, too
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        path = process.stdout.readline().strip()
        assert path, "the control plane does not start: is it built? make kube"
        yield Cluster(BIN, Path(path))
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """One that refuses pods which are not `restricted`; gone with all in it afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, *(f"{key}={value}" for key, value in RESTRICTED.items()))
    yield Namespace(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")
