"""Security of every pod of every case; secrets are in Secrets only."""

import json
from typing import Any

import pytest

from tests.helm.cases import CASES
from tests.helm.chart import Object, at, names, render, templates

MAY_HAVE_TOKEN = {"Deployment/mq-pipeline"}
"""With executors, which it starts."""
VOLUMES = {"emptyDir", "secret", "configMap", "persistentVolumeClaim"}
SECRET_WORDS = ("PASSWORD", "USERNAME", "AUTH", "SECRET")


def breaches(pod: Object) -> list[str]:
    """Return the breaches of PodSecurity `restricted` and of this chart's further promises."""
    spec = pod["spec"]
    expected: dict[str, Any] = {
        "securityContext runAsNonRoot": True,
        "securityContext seccompProfile type": "RuntimeDefault",
        "enableServiceLinks": False,
    }
    breached = [path for path, value in expected.items() if at(spec, path) != value]
    breached += [key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    breached += [str(volume) for volume in spec["volumes"] if len(set(volume) & VOLUMES) != 1]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        context = container["securityContext"]
        breached += ["escalation"] if context["allowPrivilegeEscalation"] is not False else []
        breached += ["capabilities"] if context["capabilities"] != {"drop": ["ALL"]} else []
        breached += ["privileged"] if "privileged" in context else []
        breached += [f"hostPort {port}" for port in container.get("ports", ()) if "hostPort" in port]
    return breached


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_restricted(case: str) -> None:
    for owner, pod in templates(render(CASES[case])):
        assert breaches(pod) == [], owner
        uid = 999 if owner == "StatefulSet/mq-redis" else 10001
        assert pod["spec"]["securityContext"]["runAsUser"] == uid, owner
        if owner != "ConfigMap/mq-executor":  # Spark writes where it lies
            assert pod["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True, owner
            mounts = {
                mount["name"]: mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]
            }
            assert mounts["tmp"] == "/tmp", owner


@pytest.mark.parametrize("case", CASES)
def test_only_pods_that_need_a_token_have_one(case: str) -> None:
    objects = render(CASES[case])
    with_token = {owner for owner, pod in templates(objects) if pod["spec"]["automountServiceAccountToken"]}
    assert with_token == (MAY_HAVE_TOKEN if case == "stream-executors" else set())
    for account in (one for one in objects if one["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
    roles = [
        one["metadata"]["name"] for one in objects if one["kind"] in ("Role", "RoleBinding", "ClusterRole")
    ]
    assert roles == (["mq-pipeline", "mq-pipeline"] if with_token else [])


@pytest.mark.parametrize("case", CASES)
def test_secrets_come_from_secrets(case: str) -> None:
    objects = render(CASES[case])
    made = (
        ["mq-access"] if at(CASES[case], "access files") else []
    )  # of values that have the secrets themselves
    assert names(objects, "Secret") == made
    for owner, pod in templates(objects):
        for variable in pod["spec"]["containers"][0].get("env", ()):
            if (
                any(word in variable["name"] for word in SECRET_WORDS)
                and "NEED_CLIENT" not in variable["name"]
            ):
                if variable["name"] == "MQNS_TLS_SERVER_AUTH_CLIENT":
                    continue  # Java's name of a switch
                assert "secretKeyRef" in variable["valueFrom"], (owner, variable)
            assert "@" not in str(variable.get("value", "")), (owner, variable)
        command = json.dumps([pod["spec"]["containers"][0].get(key) for key in ("command", "args")])
        assert "password" not in command.lower(), owner


@pytest.mark.parametrize("case", CASES)
def test_every_secret_that_is_mounted_is_named_by_the_values(case: str) -> None:
    objects = render(CASES[case])
    text = json.dumps([CASES[case], names(objects, "Secret")])
    for owner, pod in templates(objects):
        for volume in pod["spec"]["volumes"]:
            if name := at(volume, "secret secretName"):
                assert f'"{name}"' in text, (owner, name)
                assert at(volume, "secret defaultMode") == 0o440, owner


def test_what_is_not_restricted_is_found() -> None:
    for owner, pod in templates(render()):
        pod["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
        pod["spec"]["hostNetwork"] = True
        pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
        del pod["spec"]["securityContext"]["seccompProfile"]
        assert len(breaches(pod)) == 4, owner
