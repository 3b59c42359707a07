"""The node of Spark's executor pods: their containers are processes of this machine, for kwok runs nothing.

What a container of Spark's image does is done here: its environment is the pod's, its command that of the image's entry
point."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from mqpipeline.java import java_home_here
from tests.helm.chart import ROOT, Object
from tests.kube.cluster import Namespace

HERE: Final = "127.0.0.1"
EVERY_S: Final = 0.2
BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
SPARK: Final = Path(pyspark.__file__).parent


class Executors:
    """Starts each executor pod that is running. `pods` has them all, those that are gone too."""

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.pods: dict[str, Object] = {}
        self._namespace = namespace
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node")

    @contextmanager
    def running(self) -> Iterator["Executors"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._end.set()
            self._thread.join()
            for process in self._processes.values():
                process.kill()
                process.wait()

    def kill(self, name: str) -> None:
        """End a pod as the loss of its node does: no word from its process, and the pod is gone."""
        self._processes[name].send_signal(signal.SIGKILL)
        self._namespace.kubectl("delete", "pod", name, "--force", "--grace-period=0")

    def _run(self) -> None:
        while not self._end.wait(EVERY_S):
            listed = self._namespace.get("pods", "--selector=spark-role=executor")
            pods = {pod["metadata"]["name"]: pod for pod in listed if pod["status"]["phase"] == "Running"}
            for name in pods.keys() - self.pods.keys():
                self.pods[name] = pods[name]
                self._processes[name] = self._start(pods[name])

    def _start(self, pod: Object) -> subprocess.Popen[bytes]:
        folder = self._folder / pod["metadata"]["name"]
        folder.mkdir()
        environment = os.environ | image() | _environment(pod, folder)
        with (folder / "output.txt").open("wb") as output:
            return subprocess.Popen(
                _command(environment), cwd=folder, env=environment, stdout=output, stderr=output
            )


def image() -> dict[str, str]:
    """What the image of the pipeline has where the container looks for it."""
    java_home = java_home_here() or os.environ.get("JAVA_HOME")
    return {
        **({"JAVA_HOME": java_home} if java_home else {}),
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{SPARK / 'python'}:{ROOT}",
        "SPARK_LOCAL_IP": HERE,
    }


def _environment(pod: Object, folder: Path) -> dict[str, str]:
    """Return the variables of the container. Its volumes are in `folder`, and its address is that of this machine."""
    (container,) = pod["spec"]["containers"]
    fields = {"status.podIP": HERE, "metadata.name": pod["metadata"]["name"]}
    variables = {
        variable["name"]: variable.get("value") or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container["env"]
    }
    (local,) = (mount for mount in container["volumeMounts"] if mount["name"].startswith("spark-local-dir"))
    return variables | {"SPARK_LOCAL_DIRS": str(folder / local["name"])}


def _command(environment: dict[str, str]) -> list[str]:
    """Return what the entry point of Spark's image starts for `executor`."""
    options = [value for name, value in sorted(environment.items()) if name.startswith("SPARK_JAVA_OPT_")]
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    classes = f"{environment.get('SPARK_CLASSPATH', '')}:{SPARK}/jars/*"
    arguments = {
        "--driver-url": "SPARK_DRIVER_URL",
        "--executor-id": "SPARK_EXECUTOR_ID",
        "--cores": "SPARK_EXECUTOR_CORES",
        "--app-id": "SPARK_APPLICATION_ID",
        "--hostname": "SPARK_EXECUTOR_POD_IP",
        "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
        "--podName": "SPARK_EXECUTOR_POD_NAME",
    }
    java = "java" if "JAVA_HOME" not in environment else f"{environment['JAVA_HOME']}/bin/java"
    heap = [f"-Xms{memory}", f"-Xmx{memory}"]
    words = [word for option, name in arguments.items() for word in (option, environment[name])]
    return [java, *options, *heap, "-cp", classes, BACKEND, *words]
