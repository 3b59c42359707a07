"""Writes Prometheus's rules and the page of alerts from `metrics/alerts.py`: `python -m tools.alert_rules`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from metrics.alerts import ALERTS, RECORDINGS
from metrics.rules import Alert, Recording, written_out

ROOT = Path(__file__).resolve().parent.parent
RULES, PAGE = ROOT / "helm" / "files" / "rules.yaml", ROOT / "docs" / "alerts.md"
RUNBOOK = "runbook.md"
PREFIX = "RocketmqNamesrv"
RULES_HEAD = """\
# Rules for Prometheus: docs/alerts.md. Written by `make generate` from metrics/alerts.py; a test compares them.
"""
HEAD = """\
# Alerts

What pages and what makes a ticket, and what to do then. Written by `make generate` from `metrics/alerts.py`; a test
compares them, and for each alert one makes its fault happen to a running service.

The rules are `helm/files/rules.yaml`: recorded ratios and these alerts, over the [metrics](metrics.md). The
[chart](kubernetes.md#metrics) makes an object of them with `metrics.rules.enabled=true`. Any other Prometheus takes the
file as it is:

```yaml
rule_files: [rules.yaml]
scrape_configs:
  - job_name: redis-namesrv
    scrape_interval: 30s
    static_configs: [{targets: ["localhost:8080"]}]
```

Scrape at least each minute: the shortest range of a rule is two minutes. One Prometheus needs the rules once, for all
namespaces that it scrapes. Alerts are by the label `ns`, so two name servers that both have the namespace `default` are
one to them: give each its own (`namespace`), or a Prometheus.

All alerts have the labels `ns` and `severity` (`page`, `ticket`), and annotations: `summary`, `description` with the
labels of the series and its value, and `runbook_url`, the section of the [runbook](runbook.md). All names begin with
`RocketmqNamesrv`.

| alert | severity | true for | means; where to look first |
|---|---|---|---|
"""
OBJECTIVES = """
## Objectives

Over 30 days. Rules record how far they are missed as a ratio, over the last 5 and 30 minutes, 1 and 6 hours and 3
days: `ns:lookup_errors:ratio_rate5m`.

| recorded as | good | of | objective |
|---|---|---|---|
| `ns:lookup_errors:ratio_rate…` | lookups (105) not answered error or busy | those not denied | 99.99 % |
| `ns:lookup_slow:ratio_rate…` | lookups that take 5 ms in the server at most | all lookups | 99.9 % |
| `ns:visibility_slow:ratio_rate…` | changes that a worker applies within 5 ms | all changes, in each worker | 99 % |
| `ns:expiry_late:ratio_rate…` | members that a worker leaves out within 1 s after their lease | all, in each | 99.9 % |

`ns:lookups:rate…` is lookups per second. A wrong answer that a topic does not exist looks like a success to these;
`WrongRoute` is for that.

## Why some expressions are as they are

The expressions are in `helm/files/rules.yaml`.

"""
TAIL = """
## Dashboard

`helm/files/dashboard.json` is for Grafana: import it, or let its sidecar take the chart's ConfigMap
(`metrics.dashboard.enabled`). It is written from `tools/dashboard_panels.py`. CPU and memory of pods are there where
the same Prometheus scrapes the kubelets, restarts where it scrapes kube-state-metrics: processes do not publish them.
Budgets, flapping brokers, availability and lag of the pipeline are there where it runs; ends of certificates where
there is TLS.

What its queries say of three minutes of a real service, which a Prometheus scrapes each second: clients look up,
brokers come, hang and go, an operator drains a broker and sets a key at 1:00, Redis stands still for 8 s at 1:30. The
reports of the pipeline are an example. `make dashboard-picture` draws it without Grafana, whose own drawing differs.

![Panels of the dashboard by row](dashboard.png)

## What is not there

Refusals by access rules have no alert: there is none before there are access rules (`AccessDenied`).
"""


class _Lines(yaml.SafeDumper):
    """Writes text of several lines as lines."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Lines.add_representer(str, _text)


def rules() -> str:
    """Return the text of the rule file."""
    group = {"name": "redis-namesrv", "rules": [*map(_recording, RECORDINGS), *map(_alert, ALERTS)]}
    return RULES_HEAD + yaml.dump({"groups": [group]}, Dumper=_Lines, sort_keys=False, width=1000)


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(map(_row, ALERTS)) + OBJECTIVES + "".join(_reasons()) + TAIL


def anchor(heading: str) -> str:
    """Return a heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _recording(rule: Recording) -> dict[str, Any]:
    return {"record": rule.name, "expr": written_out(rule.expression)}


def _alert(alert: Alert) -> dict[str, Any]:
    labels = ", ".join(f"{label} {{{{ $labels.{label} }}}}" for label in alert.by)
    return {
        "alert": PREFIX + alert.name,
        "expr": written_out(alert.expression),
        "for": alert.after,
        "labels": {"severity": str(alert.severity)},
        "annotations": {
            "summary": alert.summary,
            "description": f"{labels}: {{{{ $value | {alert.unit} }}}}. First: {alert.look}",
            "runbook_url": f"docs/{RUNBOOK}#{anchor(alert.section)}",
        },
    }


def _row(alert: Alert) -> str:
    name = f"[`{alert.name}`]({RUNBOOK}#{anchor(alert.section)})"
    return f"| {name} | {alert.severity} | {alert.after} | {alert.summary} {alert.look} |\n"


def _reasons() -> Iterator[str]:
    for alert in ALERTS:
        if alert.why:
            yield f"- `{alert.name}`: {alert.why}\n"


if __name__ == "__main__":
    RULES.write_text(rules())
    PAGE.write_text(page())
