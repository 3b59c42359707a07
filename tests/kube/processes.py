"""The node of pods that answer callers: of each component one container is a process of this machine, for kwok runs
nothing.

What kubelet does is done here. Variables come from the pod and its Secrets; a volume of a Secret is a folder whose
files are replaced by swapping a link, as kubelet's; and all pods of the component lead exec, port-forward and logs to
that one process. It has other ports, and a Redis of the test."""

import base64
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from testbed.eventually import eventually
from testbed.ports import free_port
from tests.helm.chart import ROOT, Object, at
from tests.kube.cluster import Namespace

HERE: Final = "127.0.0.1"
START_S: Final = 60.0
STOP_S: Final = 30.0
PROGRAMS: Final = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
LINE: Final = "1970-01-01T00:00:00Z stdout F "
"""What kubelet's log files have before each line, without the time."""
PORTS: Final = {"remoting": "MQNS_LISTEN_PORT", "http": "MQNS_HTTP_PORT"}
"""By component: what its process is told of its port."""


class SecretVolume:
    """A folder with the content of a Secret, whose files are replaced all at once."""

    def __init__(self, namespace: Namespace, volume: Object, folder: Path) -> None:
        self._namespace = namespace
        self._name: str = volume["secret"]["secretName"]
        self._mode: int = volume["secret"]["defaultMode"]
        self._folder = folder
        self._versions = count()
        self._held: dict[str, str] = {}
        folder.mkdir(parents=True)
        self.sync()

    def sync(self) -> None:
        """Take over what is in the Secret now, as kubelet does within a minute or so."""
        found: Object = msgspec.json.decode(
            self._namespace.kubectl("get", "secret", self._name, "--output=json")
        )
        if found["data"] == self._held:
            return
        version = self._folder / f"..{next(self._versions)}"
        version.mkdir()
        for name, content in found["data"].items():
            (version / name).write_bytes(base64.b64decode(content))
            (version / name).chmod(self._mode)
        _link(self._folder / "..data", version.name)
        for name in found["data"].keys() - self._held.keys():
            _link(self._folder / name, f"..data/{name}")
        for name in self._held.keys() - found["data"].keys():
            (self._folder / name).unlink()
        self._held = found["data"]


class Container:
    """The process of a component's first container; `environment` is all that it has of this machine."""

    def __init__(self, namespace: Namespace, pod: Object, folder: Path, more: Mapping[str, str]) -> None:
        self.component: str = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        self.port = free_port()
        self.output = folder / "output.txt"
        self._spec: Object = pod["spec"]["containers"][0]
        self._places = {mount["mountPath"]: folder / mount["name"] for mount in self._spec["volumeMounts"]}
        self._volumes = [
            SecretVolume(namespace, volume, folder / volume["name"])
            for volume in pod["spec"]["volumes"]
            if "secret" in volume and at(self._spec, f"volumeMounts {volume['name']}")
        ]
        for place in self._places.values():
            place.mkdir(parents=True, exist_ok=True)
        self.environment = self._variables(namespace) | {
            "PATH": PROGRAMS,
            "PYTHONPATH": str(ROOT),
            "MQNS_BIND_ADDRESS": HERE,
            "MQNS_HTTP_BIND_ADDRESS": HERE,
            PORTS[self.component]: str(self.port),
            **more,
        }
        self._process = subprocess.Popen(
            self._spec["command"],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._process.stdout
        with self.output.open("wb") as output:
            self._log = subprocess.Popen(
                ["sed", "--unbuffered", f"s/^/{LINE}/"], stdin=self._process.stdout, stdout=output
            )
        self._process.stdout.close()  # sed has it

    @property
    def pid(self) -> int:
        return self._process.pid

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def sync(self) -> None:
        """Take over what changed in the Secrets of its volumes."""
        for volume in self._volumes:
            volume.sync()

    def runs(self) -> bool:
        return self._process.poll() is None

    def is_ready(self) -> bool:
        """Return what its startup probe says. AssertionError with its output if it has ended."""
        assert self.runs(), self.said()[-3000:]
        probe = self._spec["startupProbe"]
        if "exec" in probe:
            words = probe["exec"]["command"]
            return subprocess.run(words, env=self.environment, cwd=ROOT, check=False).returncode == 0
        try:
            urllib.request.urlopen(f"http://{HERE}:{self.port}{probe['httpGet']['path']}", timeout=5).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        finally:
            self._process.kill()
            self._log.wait(STOP_S)

    def _variables(self, namespace: Namespace) -> dict[str, str]:
        return {
            variable["name"]: self._here(variable.get("value") or _from(namespace, variable["valueFrom"]))
            for variable in self._spec["env"]
        }

    def _here(self, text: str) -> str:
        """Return a value, in which a path below a volume is that on this machine."""
        for path, place in self._places.items():
            if text == path or text.startswith(f"{path}/"):
                return str(place) + text.removeprefix(path)
        return text


@contextmanager
def running(
    namespace: Namespace, release: str, component: str, folder: Path, **more: str
) -> Iterator[Container]:
    """Start the process of a component that has pods, and lead all of these to it; `more` are further variables."""
    pods = namespace.pods(release, component)
    container = Container(namespace, pods[0], folder / component, more)
    try:
        namespace.apply(leading for pod in pods for leading in _leading(pod, container))
        eventually(container.is_ready, START_S)
        yield container
    finally:
        container.stop()


def _leading(pod: Object, container: Container) -> Iterator[Object]:
    """Yield what kwok is told of a pod."""
    port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    variables = [{"name": name, "value": value} for name, value in container.environment.items()]
    spec: dict[str, dict[str, Any]] = {
        "PortForward": {"forwards": [{"ports": [port], "target": {"address": HERE, "port": container.port}}]},
        "Exec": {"execs": [{"local": {"workDir": str(ROOT), "envs": variables}}]},
        "Logs": {"logs": [{"logsFile": str(container.output)}]},
    }
    for kind, of_kind in spec.items():
        about = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        yield {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": about, "spec": of_kind}


def _from(namespace: Namespace, source: Mapping[str, Any]) -> str:
    """Return a value of a Secret, or the address of the pod, which is this machine's."""
    if source.get("fieldRef", {}).get("fieldPath") == "status.podIP":
        return HERE
    of = source["secretKeyRef"]
    found: Object = msgspec.json.decode(namespace.kubectl("get", "secret", of["name"], "--output=json"))
    return base64.b64decode(found["data"][of["key"]]).decode()


def _link(path: Path, target: str) -> None:
    """Make or replace a link without a moment in which there is none."""
    fresh = path.with_name(f"{path.name}.fresh")
    fresh.symlink_to(target)
    fresh.rename(path)
