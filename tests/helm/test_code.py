"""The chart and the code agree: options, variables, commands, ports, files, times."""

import re
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.main import get_command

from mqnamesrv import gunicorn_common, probe
from mqns.cli.app import app
from mqns.roundtrip import arguments
from mqpipeline.options import load as load_pipeline
from registry.options.catalogue import CATALOGUE, SECRETS, VARIABLES, Options
from registry.options.host_names import is_listed, names_of
from registry.options.load import load
from registry.store.url import parse
from tests.helm.cases import CASES
from tests.helm.chart import (
    CHART,
    COMPONENTS,
    ROOT,
    Object,
    at,
    container,
    environment,
    find,
    render,
    templates,
)
from tools import chart_options
from worker.jobs.liveness_file import LONGEST_SILENCE_S

REDIS_CASES = [case for case in CASES if case.endswith(", enforcing, two")]
PASSWORD = "pa:ss/w@rd?"


def plain(one: Object) -> dict[str, str]:
    """Return the environment as a process sees it, with a word for each secret."""
    return {name: value if isinstance(value, str) else PASSWORD for name, value in environment(one).items()}


def deployment(values: Any, component: str) -> Object:
    return find(render(values), "Deployment", f"mq-{component}")


def test_generated_files_agree_with_the_catalogue() -> None:
    say = "run: make generate"
    text = chart_options.SCHEMA.read_text()
    assert chart_options.schema(text) == text, say
    assert chart_options.VARIABLES.read_text() == chart_options.variables(), say


def test_what_the_chart_offers_holds_no_secret() -> None:
    """A secret has a value of its own, which names a Secret; whatever is called a password is one."""
    offered = {option.key for option in chart_options.offered()}
    assert {"namespace", "remotingWorkers", "supportActingMaster"} <= offered
    assert not offered & SECRETS
    assert {option.key for option in CATALOGUE if option.key.lower().endswith("password")} <= SECRETS


def test_what_the_chart_sets_itself_is_an_option() -> None:
    assert {option.key for option in CATALOGUE} >= chart_options.SET_BY_CHART


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("case", REDIS_CASES)
def test_processes_understand_their_environment(case: str, component: str) -> None:
    env = plain(deployment(CASES[case], component))
    assert [name for name in env if name not in {*VARIABLES, "TZ", "PROMETHEUS_MULTIPROC_DIR"}] == []
    options = load(env)
    assert options.enable_shutdown_gracefully
    assert options.shutdown_wait_time_seconds == 30
    assert (options.listen_port, options.http_port) == (9876, 8080)
    assert (options.bind_address, options.http_bind_address) == ("0.0.0.0", "0.0.0.0")
    kinds = {"embedded": "server", "standalone": "server", "sentinel": "sentinel", "cluster": "cluster"}
    kind = CASES[case].get("redis", {}).get("kind", "embedded")
    assert parse(options.redis_url).kind == kinds[kind]
    assert parse(options.rq_redis_url or options.redis_url).kind != "cluster"


def test_http_is_asked_by_the_names_of_its_service() -> None:
    values = {"clusterDomain": "corp.example", "options": {"httpAllowedHosts": "ns.example.com, .lab"}}
    service = find(render(values), "Service", "mq-http")["metadata"]
    name, namespace = service["name"], service["namespace"]
    inside = f"{name}.{namespace}"
    options = load(plain(deployment(values, "http")))
    assert names_of(options.http_allowed_hosts) == {
        *(name, inside, f"{inside}.svc", f"{inside}.svc.corp.example", "ns.example.com", ".lab")
    }
    names = names_of(load(plain(deployment({}, "http"))).http_allowed_hosts)
    assert names == {name, inside, f"{inside}.svc", f"{inside}.svc.cluster.local"}


@pytest.mark.parametrize("component", ["remoting", "jobs", "scheduler"])
def test_exporters_are_reached_from_outside_their_pod(component: str) -> None:
    """Their own default is loopback."""
    exporter = at(deployment(CASES["metrics"], component), "spec template spec containers metrics env")
    options = load({one["name"]: one["value"] for one in exporter})
    assert options.http_bind_address == "0.0.0.0"
    assert is_listed("mq-http", names_of(options.http_allowed_hosts))


def test_logins_and_files_reach_redis() -> None:
    options = load(plain(deployment(CASES["standalone-tls, plain, two"], "jobs")))
    store = parse(options.redis_url)
    assert store.settings == {
        "host": "redis.db",
        "port": 6380,
        "db": 0,
        "ssl": True,
        "ssl_ca_certs": "/etc/redis-tls/ca.crt",
        "ssl_certfile": "/etc/redis-tls/tls.crt",
        "ssl_keyfile": "/etc/redis-tls/tls.key",
        "username": PASSWORD,
        "password": PASSWORD,
    }


def test_sentinels_are_asked_for_the_service() -> None:
    store = parse(load(plain(deployment(CASES["sentinel, plain, two"], "http"))).redis_url)
    assert store.service == "main"
    assert store.nodes == (("s0.db", 26379), ("s1.db", 26379), ("s2.db", 26379))
    assert store.sentinel == {"username": PASSWORD, "password": PASSWORD}


def test_tls_of_the_remoting_port() -> None:
    options = load(plain(deployment(CASES["embedded, enforcing, two"], "remoting")))
    assert (options.tls_server_mode, options.tls_test_mode_enable) == ("enforcing", False)
    assert (options.tls_server_need_client_auth, options.tls_server_auth_client) == ("require", True)
    assert options.tls_server_key_password == PASSWORD
    for path in (
        options.tls_server_cert_path,
        options.tls_server_key_path,
        options.tls_server_trust_cert_path,
    ):
        assert path.startswith("/etc/namesrv-tls/")
    assert load(plain(deployment({}, "remoting"))).tls_test_mode_enable


def test_options_arrive_as_they_were_given() -> None:
    given = {
        "eventsMaxBytes": 1 << 40,
        "supportActingMaster": True,
        "connectionLossProbe": False,
        "replyEncoding": "json",
        "routeCacheBytes": 123456789,
        "clientRequestThreadPoolQueueCapacity": 100000,
    }
    options = load(plain(deployment({"options": given}, "remoting")))
    assert options.events_max_bytes == 1 << 40
    assert options.route_cache_bytes == 123456789
    assert options.client_request_thread_pool_queue_capacity == 100000
    assert (options.support_acting_master, options.connection_loss_probe) == (True, False)
    assert options.reply_encoding == "json"


def test_the_chart_is_of_this_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["appVersion"], about["version"]) == (version[1], version[1])


@pytest.mark.parametrize("component", COMPONENTS)
def test_commands_name_what_there_is(component: str) -> None:
    pod = container(deployment({}, component))
    commands = [pod["command"]] + [
        at(pod, f"{kind} exec command") for kind in ("startupProbe", "readinessProbe", "livenessProbe")
    ]
    for words in filter(None, commands):
        if words[0] == "gunicorn":
            assert words[1] == "-c"
            assert find_spec(words[2].removeprefix("python:"))
            assert words[3:] == ["wsgi:app"]
        else:
            assert words[:2] == ["python", "-m"]
            assert find_spec(words[2])
            assert set(words[3:]) <= set(probe.PROBES)


def test_ports_are_those_that_processes_listen_on() -> None:
    ports = {
        port["name"]: port["containerPort"]
        for component in COMPONENTS
        for port in container(deployment({}, component)).get("ports", ())
    }
    assert ports == {"remoting": Options().listen_port, "http": Options().http_port}


@pytest.mark.parametrize("wait_s", [5, 30, 120])
def test_there_is_time_to_drain(wait_s: int) -> None:
    values = {"options": {"shutdownWaitTimeSeconds": wait_s}}
    remoting = deployment(values, "remoting")
    needed = container(remoting)["lifecycle"]["preStop"]["sleep"]["seconds"] + wait_s
    grace = at(remoting, "spec template spec terminationGracePeriodSeconds")
    assert (
        needed + gunicorn_common.STOP_AFTER_DRAIN_S
        < grace
        <= needed + gunicorn_common.STOP_AFTER_DRAIN_S + 10
    )


def test_probes_take_less_time_than_they_are_given() -> None:
    assert container(deployment({}, "remoting"))["readinessProbe"]["timeoutSeconds"] > probe.TIMEOUT_S
    liveness = container(deployment({}, "jobs"))["livenessProbe"]
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= LONGEST_SILENCE_S


@pytest.mark.parametrize("component", COMPONENTS)
def test_processes_with_a_liveness_file_are_probed(component: str) -> None:
    workload = deployment({}, component)
    liveness_file = load(plain(workload)).beat_file
    probed = "beat" in (at(container(workload), "livenessProbe exec command") or ())
    assert bool(liveness_file) == probed == (component in ("jobs", "scheduler"))
    assert not liveness_file or liveness_file.startswith("/tmp/")


def test_the_pipeline_understands_its_environment() -> None:
    cron = find(render(CASES["batch"]), "CronJob", "mq-pipeline")
    options = load_pipeline(plain(cron))
    assert parse(options.url).settings["host"] == "mq-redis"
    assert options.namespaces == ("default",)
    assert options.slo == {"*": 0.9}
    assert options.retire_after == 604800000
    mounted = {mount["mountPath"] for mount in container(cron)["volumeMounts"]}
    assert urlsplit(options.warehouse).path in mounted


def test_the_pipeline_reaches_the_redis_of_the_name_server() -> None:
    cron = find(render(CASES["batch-sentinel-tls"]), "CronJob", "mq-pipeline")
    at_redis = parse(load_pipeline(plain(cron)).url)
    assert (at_redis.kind, at_redis.service, at_redis.settings["ssl"]) == ("sentinel", "main", True)
    mounted = {mount["mountPath"] for mount in container(cron)["volumeMounts"]}
    assert str(PurePosixPath(at_redis.settings["ssl_ca_certs"]).parent) in mounted


@pytest.mark.parametrize("case", ["embedded, enforcing, two", "node-port", "principals"])
def test_helm_test_calls_the_round_trip(case: str) -> None:
    """Its words are understood, and name the Services of the same release and their ports."""
    objects = render(CASES[case])
    pod = container(find(objects, "Pod", "mq-test-wire"))
    assert pod["command"][:3] == ["python", "-m", "mqns.roundtrip"]
    given = arguments(pod["command"][3:])
    assert given.tls == (case != "node-port")
    for address in given.addresses:
        name, _, port = address.partition(":")
        assert find(objects, "Service", name)["spec"]["ports"][0]["port"] == int(port)
    mounted = [mount["mountPath"] for mount in pod["volumeMounts"]]
    assert bool(given.certificate) == given.tls
    for file in filter(None, (given.certificate, given.key)):
        assert file.rpartition("/")[0] in mounted


def test_comparisons_are_commands_of_mqns() -> None:
    (_, pod), *_ = [one for one in templates(render(CASES["drift"])) if one[0] == "Deployment/mq-drift"]
    commands = [one["command"] for one in pod["spec"]["containers"]]
    assert [words[:2] for words in commands] == [["mqns", "drift"]] * 2
    command = get_command(app).commands["drift"]  # type: ignore[attr-defined]
    given = [command.make_context("drift", list(words[2:])).params for words in commands]
    assert [(one["first"], one["second"], one["name"]) for one in given] == [
        ("10.0.0.1:9876", "mq-remoting:9876", "old-1"),
        ("[fd00::1]:9876", "mq-remoting:9876", "old-2"),
    ]
    assert {one["http"] for one in given} == {"http://mq-http:8080"}
    assert all((one["every"], one["kv"]) == (60, ["own"]) for one in given)
