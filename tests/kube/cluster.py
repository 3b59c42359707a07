"""kubectl and helm on a cluster, and what tests ask it."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.helm.chart import CHART, Object

Done = subprocess.CompletedProcess[str]
RESTRICTED: Final = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}
OF_EVERY_NAMESPACE: Final = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
LONGEST_S: Final = 300


class Cluster(msgspec.Struct, frozen=True):
    """Where its programs are, and how they reach it."""

    bin: Path
    kubeconfig: Path

    def run(self, program: str, *words: str, given: str = "") -> Done:
        """Whatever comes of it."""
        env = os.environ | {"KUBECONFIG": str(self.kubeconfig), "PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.run(
            [program, *words],
            input=given,
            env=env,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )

    def kubectl(self, *words: str, given: str = "") -> str:
        """What it prints; AssertionError with what it complains of."""
        return _well(self.run("kubectl", *words, given=given))

    def helm(self, *words: str, values: Mapping[str, Any] | None = None) -> str:
        """The same; `values` are read as `-f -`."""
        return _well(self.run("helm", *words, *_from_input(values), given=json.dumps(values or {})))

    def get(self, kind: str, namespace: str, *words: str) -> list[Object]:
        """All objects of a kind."""
        listing = self.kubectl("get", kind, "--namespace", namespace, "--output=json", *words)
        return list(json.loads(listing)["items"])


class Namespace(msgspec.Struct, frozen=True):
    """One that refuses pods which are not `restricted`."""

    cluster: Cluster
    name: str

    def get(self, kind: str, *words: str) -> list[Object]:
        return self.cluster.get(kind, self.name, *words)

    def kubectl(self, *words: str, given: str = "") -> str:
        return self.cluster.kubectl("--namespace", self.name, *words, given=given)

    def install(self, release: str, values: Mapping[str, Any], *words: str) -> str:
        """Until all of it is ready."""
        return self.cluster.helm(*self._installing("install", release, *words), values=values)

    def upgrade(self, release: str, values: Mapping[str, Any], *words: str) -> str:
        return self.cluster.helm(*self._installing("upgrade", release, *words), values=values)

    def try_to_install(self, release: str, values: Mapping[str, Any], *words: str) -> Done:
        """Whatever comes of it."""
        command = (*self._installing("install", release, *words), *_from_input(values))
        return self.cluster.run("helm", *command, given=json.dumps(values))

    def uninstall(self, release: str) -> None:
        self.cluster.helm("uninstall", release, "--namespace", self.name, "--wait", "--timeout=120s")

    def admit(self, objects: Iterable[Object]) -> Done:
        """What the API server would say of them, warnings included, without taking them."""
        words = ("apply", "--server-side", "--dry-run=server", "--warnings-as-errors", "--filename=-")
        return self.cluster.run("kubectl", "--namespace", self.name, *words, given=_list(objects))

    def apply(self, objects: Iterable[Object]) -> None:
        """Without Helm."""
        self.kubectl("apply", "--filename=-", given=_list(objects))

    def pods(self, release: str, component: str) -> list[Object]:
        labels = f"app.kubernetes.io/instance={release},app.kubernetes.io/component={component}"
        return self.get("pods", f"--selector={labels}")

    def objects(self) -> set[str]:
        """`Kind/name` of all that is in it, but for what each has."""
        kinds = self.cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
        wanted = ",".join(kind for kind in kinds if not kind.startswith("events"))
        found = self.get(wanted, "--ignore-not-found")
        return {f"{one['kind']}/{one['metadata']['name']}" for one in found} - OF_EVERY_NAMESPACE

    def _installing(self, verb: str, release: str, *words: str) -> tuple[str, ...]:
        usual = ("--namespace", self.name, "--wait", "--timeout=180s")
        return (verb, release, str(CHART), *usual, *words)


def _list(objects: Iterable[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def _from_input(values: Mapping[str, Any] | None) -> tuple[str, ...]:
    return () if values is None else ("--values=-",)


def _well(done: Done) -> str:
    assert done.returncode == 0, f"{' '.join(done.args[:4])}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout
