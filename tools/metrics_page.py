"""Writes docs/metrics.md from the catalogue: `python -m tools.metrics_page`."""

from pathlib import Path

from metrics.brokers import BROKERS_MOST, MEMBERS_MOST
from metrics.catalogue import CATALOGUE
from metrics.metric import NAMED, NS, OTHER, PREFIX, Metric

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"
HEAD = f"""\
# Metrics

What Prometheus can scrape, in its text format. Written by `make generate` from `metrics/catalogue.py`; a test compares
scrapes with it. [Alerts](alerts.md) and a dashboard are made of these.

| where | `/metrics` says |
|---|---|
| HTTP port of `make run`, `mqnamesrv`, an image | all of it, of all processes |
| HTTP pods of the [chart](kubernetes.md#metrics) | what their own processes count, and facts of the store |
| port 9464 of all other pods, with `metrics.enabled` | what their processes count |

Processes publish what they count each second, in files in a folder of `/dev/shm`, or in the one that
`PROMETHEUS_MULTIPROC_DIR` names. Files that are deleted they write again within seconds, with all that they counted; a
file that cannot be read is left out; a log line says so. Each server needs a folder of its own: one whose folder is
another's makes one, and says so.
`/metrics` needs no login, and shows names of clusters and brokers: characters
that act on a terminal as escapes (`\\x1b`, `\\u202e`), a backslash doubled, so that two names are two series. A
Prometheus that asks by a name needs it in [`httpAllowedHosts`](http-api.md#hosts), on either port.

All names begin with `{PREFIX}`. All have the label `{NS}`, the namespace. The first {NAMED} clusters, namespaces of KV
and landings are named; the other clusters and namespaces are one, `{OTHER}`, with the sum of their counts and the least
of their ratios. Series with the label `broker` are absent beyond {BROKERS_MOST:,} broker names or {MEMBERS_MOST:,}
members.

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
TAIL = """
## Counts of events

Each entry of the stream is logged and counted once, by the scheduler that has the claim of the walk over the tables
(`repair:walker`), within a second. Its position is that of the consumer `event_log` in `events:consumers`, so
`events_consumer_lag{consumer="event_log"}` is what is not counted yet. A scheduler that ends releases the claim, and
another one goes on from the position within 6 s; after one that was killed or stands still, when the claim has ended,
within 36 s. Changes from a time without any scheduler are logged and counted when one starts.

| when | logged and counted |
|---|---|
| restart, SIGHUP, rolling update, a scheduler that stands still | once |
| a scheduler is killed, loses the store or stands still between counting and writing the position | \
the last 256 entries at most twice, by the next one: position and counts are in different places, so counts are \
published first, then the position is written |
| a failover loses the newest positions, and the scheduler ends too | the entries between, twice |
| a hand-over in the midst of an operator's act of many entries | the act once, if one of the last 256 entries \
is of it |
| entries were trimmed before, by age or memory | \
not; the log says how many: `… changes before <id> are neither logged nor counted` |
| the stream began again | entries of the new one; what the old one had behind the position is gone, and has no number |
| no position, or one that cannot be read, as with the first start of this release | \
the entries of the last 30 s, and all that follow |

A scheduler that is far behind counts some thousand entries a second beside its other work, and logs at its usual
limit; `rate()` is then that of catching up. Counts of a process that has ended stay for as long as its container or
server runs, and go with it: what was counted after the last scrape is in no scrape then, and the next process begins
with 0, which Prometheus takes as a restart of the counter. Add up all instances, for any of them may have counted.

## What is not there

| | why |
|---|---|
| watchers | there is no watch over HTTP |
| when keys of peers end | there are none yet |
| `limit_used_ratio` of limits of a broker, request or host | each is near its own; see `limit_refusals_total` |
| `events_fold_mismatches_total` | `events_fold_mismatches`, of the newest run of the pipeline: no process counts them |
| `result` skipped of `task_runs_total` | a job that another process runs, or has run in this period, is not begun |
| a setting for series by broker | they end by themselves, at numbers that a scrape bears |
| connections closed for unread answers, by limit | `connection_events_total` has them as `closed_slow` |
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(map(_row, CATALOGUE)) + TAIL


def _row(metric: Metric) -> str:
    labels = " ".join(f"`{label}`" for label in metric.label_names)
    scopes = " ".join(metric.scopes)
    return f"| `{metric.name}` | {metric.type} | {labels} | {scopes} | {metric.about} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
