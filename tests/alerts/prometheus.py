"""A real Prometheus, and what the dashboard's queries need beside the metrics of a service."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from mqnamesrv.child import Child
from mqnamesrv.program import Program
from mqpipeline.reports.catalogue import SLO
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import Results
from testbed.eventually import eventually
from testbed.ports import free_port
from tests.alerts.faults import DAY_MS
from tests.alerts.service import Service
from tests.mqpipeline.serving.example import AS_OF, RUN, results, row
from tools.alert_rules import RULES
from tools.dashboard import FILE

VARIABLES: Final = {"$__rate_interval": "15s", "$ns": ".*", "$cluster": ".*", "$instance": ".*"}
DASHBOARD: Final[dict[str, Any]] = json.loads(FILE.read_text())
PANELS: Final = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


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


def filled_in(query: str) -> str:
    """Return the query with values of the dashboard's variables."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def report(service: Service) -> None:
    """Have the reports of a run, and a landing."""
    redis, keys = service.store.client, service.keys
    budget = row(SLO.table, "cluster:c1", "30d", slo=0.999, budget_ms=0.001 * DAY_MS, remaining=0.5)
    publish(redis, "default", RUN, Results(AS_OF, {**results().tables, SLO.table.name: (budget,)}))
    redis.hset(keys.report("flap:values"), "slot:c1:b0:0", '{"flapping": true}')
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "0-0", "seq": 0, "at_ms": 1}))
