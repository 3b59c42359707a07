"""Writes docs/metrics.md from the catalogue: `python -m tools.metrics_page`."""

from pathlib import Path

from metrics.catalogue import CATALOGUE, NAMED, NS, OTHER, PREFIX, Metric

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"
HEAD = f"""\
# Metrics

What `GET /metrics` of the HTTP workers says, in the text format of Prometheus. Written by `make generate` from
`metrics/catalogue.py`; a test compares a scrape with it.

All names begin with `{PREFIX}`. All have the label `{NS}`, the namespace. The first {NAMED} clusters and the first
{NAMED} landings are named; the other clusters are one, `{OTHER}`, with the least value of them.

| scope | at a scrape |
|---|---|
| remoting, http, jobs | what processes of one container count, also those that have ended; 1 s old at most |
| store | the same at every worker, so aggregate with `max`, never with `sum`; absent while the store is away |

```console
$ curl -s localhost:8080/metrics
```

| metric | type | labels | scope | |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(map(_row, CATALOGUE))


def _row(metric: Metric) -> str:
    labels = " ".join(f"`{label}`" for label in metric.label_names)
    scopes = " ".join(metric.scopes)
    return f"| `{metric.name}` | {metric.type} | {labels} | {scopes} | {metric.about} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
