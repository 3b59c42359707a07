"""A real Prometheus scrapes a loaded server and evaluates the rules; each panel of the dashboard has series there."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from metrics.metric import PREFIX
from mqnamesrv.child import Child
from mqnamesrv.program import Program
from mqpipeline.reports.catalogue import SLO
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import Results
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.ports import free_port
from tests.alerts.conftest import load
from tests.alerts.faults import DAY_MS
from tests.alerts.service import Service
from tests.mqpipeline.serving.example import AS_OF, RUN, results, row
from tools.alert_rules import RULES
from tools.dashboard import FILE

pytestmark = [pytest.mark.needs("prometheus", "redis-server"), pytest.mark.timeout(180)]
VARIABLES: Final = {"$__rate_interval": "15s", "$ns": ".*", "$cluster": ".*", "$instance": ".*"}
ELSEWHERE: Final = {
    "CPU": "of the kubelet",
    "Memory": "of the kubelet",
    "Restarts": "of kube-state-metrics",
    "Alerts": "none fires on a server that is well",
}
"""Panels without series here, and why."""
PANELS: Final = [panel for panel in json.loads(FILE.read_text())["panels"] if panel["type"] != "row"]


class Prometheus:
    """A Prometheus that scrapes one address each second."""

    def __init__(self, folder: Path, target: str) -> None:
        folder.mkdir()
        port = free_port()
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "namesrv", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.dump(config))
        words = {
            "config.file": folder / "prometheus.yml",
            "storage.tsdb.path": folder / "data",
            "web.listen-address": f"127.0.0.1:{port}",
            "log.level": "warn",
        }
        argv = ["prometheus", *(f"--{name}={value}" for name, value in words.items())]
        self._child = Child("prometheus", Program(argv))
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}")

    @contextmanager
    def running(self) -> Iterator["Prometheus"]:
        self._child.start()
        try:
            eventually(self._is_ready)
            yield self
        finally:
            self._child.stop()
            self._http.close()

    def _is_ready(self) -> bool:
        try:
            return self._http.get("/-/ready").is_success
        except httpx.ConnectError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer."""
        answer = self._http.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def values(self, query: str) -> list[float]:
        """Return the values of a query's series now, without those that are no number."""
        series = self.ask("query", query=query)["result"]
        return [value for one in series if not math.isnan(value := float(one["value"][1]))]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield one that scrapes a loaded server, which has reports of the pipeline."""
    folder = tmp_path_factory.mktemp("dashboard")
    with Service(folder).running() as service:
        _report(service)
        target = f"127.0.0.1:{service.server.http_port}"
        with Prometheus(folder / "prometheus", target).running() as prometheus, load(service):
            eventually(lambda: prometheus.values(f"{PREFIX}requests_total"))
            _lose_brokers(service)
            yield prometheus


def _report(service: Service) -> None:
    """Have the reports of a run, and a landing."""
    redis, keys = service.store.client, service.keys
    budget = row(SLO.table, "cluster:c1", "30d", slo=0.999, budget_ms=0.001 * DAY_MS, remaining=0.5)
    publish(redis, "default", RUN, Results(AS_OF, {**results().tables, SLO.table.name: (budget,)}))
    redis.hset(keys.report("flap:values"), "slot:c1:b0:0", '{"flapping": true}')
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "0-0", "seq": 0, "at_ms": 1}))


def _lose_brokers(service: Service) -> None:
    """Have a lease end, and a broker's connection."""
    service.announce("silent", "127.0.3.1:10911", heartbeatTimeoutMillis=1000)
    over = Connection(service.server.port)
    assert Broker(addr="127.0.0.1:1").register(over).code == 0
    over.reset()


def queries() -> list[Any]:
    return [
        pytest.param(target["expr"], id=f"{panel['title']}-{target['refId']}")
        for panel in PANELS
        for target in panel["targets"]
        if panel["title"] not in ELSEWHERE
    ]


@pytest.mark.parametrize("query", queries())
def test_a_panel_has_series(prometheus: Prometheus, query: str) -> None:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    eventually(lambda: prometheus.values(query))


def test_panels_without_series_are_panels() -> None:
    assert ELSEWHERE.keys() <= {panel["title"] for panel in PANELS}


def test_every_rule_is_evaluated_without_an_error(prometheus: Prometheus) -> None:
    (group,) = prometheus.ask("rules")["groups"]
    eventually(lambda: all(rule["health"] == "ok" for rule in prometheus.ask("rules")["groups"][0]["rules"]))
    assert len(group["rules"]) > 50


def test_every_variable_has_values(prometheus: Prometheus) -> None:
    dashboard = json.loads(FILE.read_text())
    for variable in dashboard["templating"]["list"][1:]:
        inner = variable["definition"].removeprefix("label_values(").removesuffix(")")
        query, _, label = inner.replace("$ns", ".*").rpartition(", ")
        assert any(label in one["metric"] for one in prometheus.ask("query", query=query)["result"]), variable
