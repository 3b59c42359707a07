"""What every pod of every case keeps to, and that no secret is anywhere but in a secret."""

import json
from typing import Any

import pytest

from tests.helm.cases import CASES
from tests.helm.chart import Object, at, render, templates

MAY_HAVE_TOKEN = {"Deployment/mq-pipeline"}
"""With executors, which it starts."""
VOLUMES = {"emptyDir", "secret", "configMap", "persistentVolumeClaim"}
SECRET_WORDS = ("PASSWORD", "USERNAME", "AUTH", "SECRET")


def breaches(pod: Object) -> list[str]:
    """What PodSecurity `restricted` would refuse, and what this chart promises beyond it."""
    spec = pod["spec"]
    expected: dict[str, Any] = {
        "securityContext runAsNonRoot": True,
        "securityContext seccompProfile type": "RuntimeDefault",
        "enableServiceLinks": False,
    }
    found = [path for path, value in expected.items() if at(spec, path) != value]
    found += [key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    found += [str(volume) for volume in spec["volumes"] if len(set(volume) & VOLUMES) != 1]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        context = container["securityContext"]
        found += ["escalation"] if context["allowPrivilegeEscalation"] is not False else []
        found += ["capabilities"] if context["capabilities"] != {"drop": ["ALL"]} else []
        found += ["privileged"] if "privileged" in context else []
        found += [f"hostPort {port}" for port in container.get("ports", ()) if "hostPort" in port]
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_restricted(case: str) -> None:
    for who, pod in templates(render(CASES[case])):
        assert breaches(pod) == [], who
        uid = 999 if who == "StatefulSet/mq-redis" else 10001
        assert pod["spec"]["securityContext"]["runAsUser"] == uid, who
        if who != "ConfigMap/mq-executor":  # Spark writes where it lies
            assert pod["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True, who
            mounts = {
                mount["name"]: mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]
            }
            assert mounts["tmp"] == "/tmp", who


@pytest.mark.parametrize("case", CASES)
def test_nobody_has_a_token_who_needs_none(case: str) -> None:
    objects = render(CASES[case])
    with_token = {who for who, pod in templates(objects) if pod["spec"]["automountServiceAccountToken"]}
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
    assert not [one for one in objects if one["kind"] == "Secret"], "the chart would have to be told one"
    for who, pod in templates(objects):
        for variable in pod["spec"]["containers"][0].get("env", ()):
            if (
                any(word in variable["name"] for word in SECRET_WORDS)
                and "NEED_CLIENT" not in variable["name"]
            ):
                if variable["name"] == "MQNS_TLS_SERVER_AUTH_CLIENT":
                    continue  # Java's name of a switch
                assert "secretKeyRef" in variable["valueFrom"], (who, variable)
            assert "@" not in str(variable.get("value", "")), (who, variable)
        command = json.dumps([pod["spec"]["containers"][0].get(key) for key in ("command", "args")])
        assert "password" not in command.lower(), who


@pytest.mark.parametrize("case", CASES)
def test_every_secret_that_is_mounted_is_named_by_the_values(case: str) -> None:
    text = json.dumps(CASES[case])
    for who, pod in templates(render(CASES[case])):
        for volume in pod["spec"]["volumes"]:
            if name := at(volume, "secret secretName"):
                assert f'"{name}"' in text, (who, name)
                assert at(volume, "secret defaultMode") == 0o440, who


def test_what_is_not_restricted_is_found() -> None:
    for who, pod in templates(render()):
        pod["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
        pod["spec"]["hostNetwork"] = True
        pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
        del pod["spec"]["securityContext"]["seccompProfile"]
        assert len(breaches(pod)) == 4, who
