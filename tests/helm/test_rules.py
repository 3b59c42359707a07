"""Rules and dashboard in the objects of the chart are those of the files."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.helm.cases import CASES
from tests.helm.chart import find, render
from tools.alert_rules import RULES
from tools.dashboard import FILE

MEASURED = CASES["metrics"]
RUNBOOK = MEASURED["metrics"]["rules"]["runbookUrl"]


def test_the_rules_are_those_of_the_file_with_the_address_of_the_runbook() -> None:
    spec = find(render(MEASURED), "PrometheusRule", "mq-metrics")["spec"]
    assert spec == yaml.safe_load(RULES.read_text().replace("docs/runbook.md", RUNBOOK))
    assert "{{ $labels.ns }}" in json.dumps(spec)


@pytest.mark.needs("prometheus")
def test_promtool_takes_the_rules_of_the_object(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.dump(find(render(MEASURED), "PrometheusRule", "mq-metrics")["spec"]))
    checked = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert "SUCCESS" in checked.stdout, checked.stderr


def test_the_dashboard_is_the_file() -> None:
    data = find(render(MEASURED), "ConfigMap", "mq-dashboard")["data"]
    assert json.loads(data["redis-namesrv.json"]) == json.loads(FILE.read_text())
