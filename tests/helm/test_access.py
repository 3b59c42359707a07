"""Access in the chart: every process starts with the rules that it gets, and the release's own callers are admitted."""

from pathlib import Path
from typing import Any, Final

import pytest

from access import start_check
from access.caller import caller_at
from access.classes import OPERATORS, AccessClass
from access.policy import Policy
from registry.options.catalogue import Options
from registry.options.load import load
from tests.helm.cases import ACCESS_FILE, CASES, merged
from tests.helm.chart import COMPONENTS, Object, Values, address, at, find, names, render, templates, value_of

PRINCIPALS: Final = CASES["principals"]
IN_VALUES: Final = CASES["principals-in-values, balancer"]
POD: Final = "10.244.1.7"
FILES: Final = {"access.toml": ACCESS_FILE, "principals.toml": ACCESS_FILE, "mqadmin.key": "12345678abcdefgh"}
LISTENING: Final = ("remoting", "http", "metrics")
"""Containers that answer callers."""


def listening(values: Values) -> list[tuple[str, Object, Object]]:
    """Return workload, pod and container of what answers callers."""
    return [
        (f"{owner} {container['name']}", pod, container)
        for owner, pod in templates(render(values))
        for container in pod["spec"]["containers"]
        if container["name"] in LISTENING
    ]


def options_of(pod: Object, container: Object, folder: Path) -> Options:
    """Return the options that a container's process reads, its volumes of Secrets being below a folder, as kubelet
    mounts them."""
    values = {one["name"]: value_of(one) for one in container["env"]}
    env = {name: value if isinstance(value, str) else "12345678" for name, value in values.items()}
    for mount in container["volumeMounts"]:
        if mount["name"] == "access":
            place = folder / mount["mountPath"].strip("/")
            place.mkdir(parents=True)
            for name, text in FILES.items():
                (place / name).write_text(text)
                (place / name).chmod(at(pod, "spec volumes access secret defaultMode"))
            env["MQNS_ACCESS_FILE"] = str(folder) + env["MQNS_ACCESS_FILE"]
    return load(env)


def all_options(values: Values, folder: Path) -> dict[str, Options]:
    return {
        owner: options_of(pod, container, folder / str(number))
        for number, (owner, pod, container) in enumerate(listening(values))
    }


@pytest.mark.parametrize("case", CASES)
def test_no_process_refuses_to_start(case: str, tmp_path: Path) -> None:
    """Exit code 253 would be a pod that restarts for ever."""
    refusals = {
        owner: start_check.refusal(options) for owner, options in all_options(CASES[case], tmp_path).items()
    }
    assert set(refusals.values()) == {None}, refusals


@pytest.mark.parametrize("case", ["principals", "principals-in-values, balancer"])
def test_the_access_file_is_where_its_readers_look(case: str, tmp_path: Path) -> None:
    """As a whole folder, not by subPath, which would never change; and no file is open to other users."""
    for owner, pod, container in listening(CASES[case]):
        mount = at(container, "volumeMounts access")
        assert set(mount) == {"name", "mountPath", "readOnly"}, owner
        assert at(pod, "spec securityContext fsGroup") == at(pod, "spec securityContext runAsGroup"), owner
    for options in all_options(CASES[case], tmp_path).values():
        Path(options.access_file).chmod(0o444)
        assert "defaultMode 0440" in (start_check.refusal(options) or "")


def test_a_changed_secret_changes_no_pod() -> None:
    """What is in a Secret is read by the running processes: neither checksum nor name is in a pod."""
    other = merged(IN_VALUES, {"access": {"files": {"mqadmin.key": "another-secret-of-it"}}})
    before, after = render(IN_VALUES), render(other)
    assert find(before, "Secret", "mq-access") != find(after, "Secret", "mq-access")
    assert [one for one in before if one["kind"] != "Secret"] == [
        one for one in after if one["kind"] != "Secret"
    ]


def test_secrets_of_the_access_file_are_in_no_other_object() -> None:
    for one in render(IN_VALUES):
        assert (FILES["mqadmin.key"] in str(one), "[principals" in str(one)) == (False, False), address(one)
    assert names(render(PRINCIPALS), "Secret") == []


def test_a_balancer_has_no_rights_by_its_own_address(tmp_path: Path) -> None:
    options = all_options(IN_VALUES, tmp_path)["Deployment/mq-remoting remoting"]
    assert options.proxy_trusted_cidrs == "127.0.0.0/8,::1/128,10.9.0.0/16,fd00:9::/64"
    assert options.proxy_required


@pytest.mark.parametrize("values", [{}, PRINCIPALS, CASES["observed"], CASES["metrics"]])
def test_pods_of_the_release_are_admitted_where_they_ask(values: Values, tmp_path: Path) -> None:
    """The scheduler looks routes up, `helm test` registers and looks up, Prometheus scrapes: by the address of a pod,
    or with a proof that the chart gives them."""
    objects = render(values)
    test = at(find(objects, "Pod", "mq-test-wire"), "spec containers wire")
    scheduler = at(find(objects, "Deployment", "mq-scheduler"), "spec template spec containers scheduler")
    for owner, options in all_options(values, tmp_path).items():
        admitted = {
            listener: Policy.of(options).classes(caller_at(listener, POD, forwarded=False))
            for listener in ("remoting", "http")
        }
        if owner.endswith(" remoting"):
            needed = AccessClass.READ | AccessClass.BROKER
            assert needed & ~admitted["remoting"] == 0 or at(test, "env MQNS_ACCESS_KEY"), owner
            assert AccessClass.READ in admitted["remoting"] or not at(scheduler, "env MQNS_CHECK_ADDRESS")
        elif AccessClass.METRICS not in admitted["http"]:
            monitor = find(objects, "PodMonitor", "mq-metrics")
            assert all(one["authorization"] for one in monitor["spec"]["podMetricsEndpoints"])


def test_a_scheduler_that_lookups_are_closed_to_makes_none() -> None:
    asks = "spec template spec containers scheduler env MQNS_CHECK_ADDRESS"
    closed: dict[str, Any] = {"options": {"accessRead": "signed mtls"}, "test": {"enabled": False}}
    assert at(find(render(), "Deployment", "mq-scheduler"), asks)
    assert at(find(render(PRINCIPALS), "Deployment", "mq-scheduler"), asks), "cidr: may be that of pods"
    assert not at(find(render(closed), "Deployment", "mq-scheduler"), asks)


def test_by_default_brokers_are_served_and_operators_show_a_proof(tmp_path: Path) -> None:
    every = all_options({}, tmp_path)
    remoting = Policy.of(every["Deployment/mq-remoting remoting"])
    pod, elsewhere = (caller_at("remoting", host, forwarded=False) for host in (POD, "192.0.2.1"))
    assert not remoting.admits(OPERATORS, pod)
    assert remoting.admits(AccessClass.BROKER, pod)
    assert not remoting.admits(AccessClass.BROKER, elsewhere)
    assert remoting.admits(AccessClass.READ, elsewhere)
    http = Policy.of(every["Deployment/mq-http http"])
    forwarded_port = caller_at("http", "127.0.0.1", forwarded=False)
    assert not http.admits(OPERATORS | AccessClass.AUDIT, forwarded_port)


@pytest.mark.parametrize("component", COMPONENTS)
def test_rules_reach_every_process_that_answers(component: str) -> None:
    """Those of the exporter are about metrics alone."""
    values = merged(CASES["metrics"], {"options": {"accessNetworks": "10.0.0.0/8", "accessMetrics": "net"}})
    workload = find(render(values), "Deployment", f"mq-{component}")
    for container in at(workload, "spec template spec containers"):
        env = {one["name"]: one.get("value") for one in container["env"]}
        assert env["MQNS_ACCESS_NETWORKS"] == "10.0.0.0/8"
        assert env["MQNS_ACCESS_METRICS"] == "net"
