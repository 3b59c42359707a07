"""A real Prometheus scrapes a loaded server and evaluates the rules; each panel of the dashboard has series there."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from metrics.metric import PREFIX
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.eventually import eventually
from tests.alerts.conftest import load
from tests.alerts.prometheus import DASHBOARD, PANELS, Prometheus, filled_in, report
from tests.alerts.service import Service

pytestmark = [pytest.mark.needs("prometheus", "redis-server"), pytest.mark.timeout(180)]
ELSEWHERE: Final = {
    "CPU": "of the kubelet",
    "Memory": "of the kubelet",
    "Restarts": "of kube-state-metrics",
    "Alerts": "none fires on a server that is well",
    "Findings of the doctor": "there is none of a server that is well",
    "Certificates end in": "there is no TLS",
}
"""Panels without series here, and why."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield one that scrapes a loaded server, which has reports of the pipeline."""
    folder = tmp_path_factory.mktemp("dashboard")
    with Service(folder).running() as service:
        report(service)
        target = f"127.0.0.1:{service.server.http_port}"
        with Prometheus(folder / "prometheus", target).running() as prometheus, load(service):
            eventually(lambda: prometheus.values(f"{PREFIX}requests_total"))
            _lose_brokers(service)
            yield prometheus


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
    eventually(lambda: prometheus.values(filled_in(query)))


def test_panels_without_series_are_panels() -> None:
    assert ELSEWHERE.keys() <= {panel["title"] for panel in PANELS}


def test_every_rule_is_evaluated_without_an_error(prometheus: Prometheus) -> None:
    (group,) = prometheus.ask("rules")["groups"]
    eventually(lambda: all(rule["health"] == "ok" for rule in prometheus.ask("rules")["groups"][0]["rules"]))
    assert len(group["rules"]) > 50


def test_every_variable_has_values(prometheus: Prometheus) -> None:
    for variable in DASHBOARD["templating"]["list"][1:]:
        inner = variable["definition"].removeprefix("label_values(").removesuffix(")")
        query, _, label = inner.replace("$ns", ".*").rpartition(", ")
        assert any(label in one["metric"] for one in prometheus.ask("query", query=query)["result"]), variable
