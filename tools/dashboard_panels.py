"""The dashboard's rows, panels and queries; `tools/dashboard.py` writes them for Grafana."""

from typing import Final, Literal

import msgspec

__all__ = ["ANNOTATIONS", "ROWS", "VARIABLES", "Panel"]

NS: Final = 'ns=~"$ns"'
HERE: Final = 'ns=~"$ns",instance=~"$instance"'
"""Labels of what processes count."""
THERE: Final = 'ns=~"$ns",cluster=~"$cluster"'
"""Labels of facts of the store about a cluster."""
RATE: Final = "[$__rate_interval]"
WITHIN: Final = "How many there were within the interval of a point."
LOOKUPS: Final = 0.9999
"""The objective of lookups that are answered."""
QUICK_S: Final = 0.005
"""The objective of lookups and of changes, in seconds."""
DAY_S: Final = 86_400
PODS: Final = f"and on (namespace, pod) N_workers{{{HERE}}}"
"""Of series of containers, those of pods that we have metrics of."""


class Query(msgspec.Struct, frozen=True):
    """A query, with `N_` for the prefix of our names, and what its series are called."""

    expression: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True):
    """A panel of one or more queries; `unit` is Grafana's.

    `steps` are thresholds, from each of which on the colour is another one than `base`; `texts` stand for values, with
    their colours. `least` and `most` bound the axis. Columns of a table that say nothing are `hidden`."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Literal["timeseries", "stat", "table", "heatmap", "state-timeline"] = "timeseries"
    about: str = ""
    base: str = "green"
    steps: tuple[tuple[float, str], ...] = ()
    texts: tuple[tuple[str, str, str], ...] = ()
    least: float | None = 0
    most: float | None = None
    hidden: tuple[str, ...] = ("Time",)


class Row(msgspec.Struct, frozen=True):
    """A row of panels."""

    title: str
    panels: tuple[Panel, ...]


def counted(name: str, by: str = "", labels: str = HERE) -> Query:
    """Return increases per second of a counter of processes, by labels."""
    return Query(f"sum by ({by}) (rate(N_{name}{{{labels}}}{RATE}))", f"{{{{{by}}}}}" if by else name)


def several(name: str, by: str, labels: str = HERE) -> Query:
    """Return increases of a counter of rare events, as a number within the interval of a point."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", ")) if by else name
    return Query(f"sum by ({by}) (increase(N_{name}{{{labels}}}{RATE}))", legend)


def busy(query: Query) -> Query:
    """Return the query without series that are 0: there are too many for a legend."""
    return Query(f"{query.expression} > 0", query.legend)


def quantiles(name: str, labels: str = HERE) -> tuple[Query, ...]:
    """Return p50 and p99 of a histogram."""
    return tuple(
        Query(
            f"histogram_quantile(0.{part}, sum by (le) (rate(N_{name}_bucket{{{labels}}}{RATE})))", f"p{part}"
        )
        for part in (50, 99)
    )


def stored(name: str, by: str, labels: str = THERE) -> Query:
    """Return a fact of the store, the same at every HTTP worker, by labels."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", ")) if by else name
    return Query(f"max by ({by}) (N_{name}{{{labels}}})", legend)


ROWS: Final = (
    Row(
        "Is it well",
        (
            Panel(
                "Ready pods",
                (
                    Query(f"sum(rocketmq_nameserver_up{{{NS}}})", "ready"),
                    Query(f"count(rocketmq_nameserver_up{{{NS}}})", "all"),
                ),
                kind="stat",
                about="HTTP workers of which /readyz says that the name server can serve.",
                base="red",
                steps=((1, "green"),),
            ),
            Panel(
                "Lookups per second",
                (Query(f'sum(rate(N_requests_total{{{HERE},request_code="105"}}{RATE}))', "lookups"),),
                unit="reqps",
            ),
            Panel(
                "Lookups that fail",
                (
                    Query(
                        f'sum(rate(N_requests_total{{{HERE},request_code="105",result=~"error|busy"}}{RATE}))\n'
                        f'/ sum(rate(N_requests_total{{{HERE},request_code="105",result!="denied"}}{RATE}))',
                        "failed",
                    ),
                ),
                unit="percentunit",
                about="Not answered, or busy; the objective allows 0.01 %.",
                steps=((1 - LOOKUPS, "red"),),
            ),
            Panel(
                "Duration of lookups",
                quantiles("request_duration_seconds", f'{HERE},request_code="105"'),
                unit="s",
                about="In the server; the objective allows 5 ms.",
                steps=((QUICK_S, "red"),),
            ),
            Panel(
                "Error budgets left",
                (stored("error_budget_remaining_ratio", "cluster"),),
                unit="percentunit",
                kind="stat",
                about="From the pipeline's report slo.",
                base="red",
                steps=((0, "orange"), (0.25, "green")),
                least=None,
            ),
            Panel(
                "Alerts",
                (
                    Query(
                        'ALERTS{alertname=~"RocketmqNamesrv.*",alertstate="firing"}',
                        "{{alertname}} {{ns}} {{severity}}",
                    ),
                ),
                kind="table",
                hidden=("Time", "Value", "__name__", "alertstate"),
            ),
            Panel(
                "Findings of the doctor",
                (busy(stored("doctor_findings", "ns, finding", NS)),),
                kind="table",
                about="What GET /v1/doctor finds, and about how many brokers, clusters, limits, jobs or consumers.",
            ),
            Panel(
                "Certificates end in",
                (
                    Query(
                        f"min by (listener) (N_tls_cert_expiry_timestamp_seconds{{{HERE}}} > 0) - time()",
                        "{{listener}}",
                    ),
                ),
                unit="s",
                kind="stat",
                about="The first that ends, of those in use; none without TLS.",
                base="red",
                steps=((14 * DAY_S, "green"),),
                least=None,
            ),
        ),
    ),
    Row(
        "Traffic",
        (
            Panel("Requests by code", (busy(counted("requests_total", "request_code")),), unit="reqps"),
            Panel(
                "Results other than ok",
                (counted("requests_total", "result", f'{HERE},result!~"ok|oneway"'),),
                unit="reqps",
            ),
            Panel("Bytes", (counted("request_bytes_total"), counted("response_bytes_total")), unit="Bps"),
            Panel(
                "Connections by role",
                (Query(f"sum by (role) (N_active_connections{{{HERE}}})", "{{role}}"),),
            ),
            Panel("Connections by event", (counted("connection_events_total", "event"),), unit="cps"),
            Panel("Requests in flight", (Query(f"sum(N_inflight_requests{{{HERE}}})", "in flight"),)),
            Panel("Requests refused as busy", (counted("admission_rejected_total", "class"),), unit="reqps"),
            Panel("Refusals by limit", (counted("limit_refusals_total", "limit"),), unit="ops"),
            Panel("Bytes that cannot be read", (counted("decode_errors_total", "reason"),), unit="reqps"),
        ),
    ),
    Row(
        "Routes",
        (
            Panel(
                "Lookups that the cache answers",
                (
                    Query(
                        f'sum(rate(N_route_cache_events_total{{{HERE},result=~"hit|negative_hit"}}{RATE}))\n'
                        f'/ sum(rate(N_route_cache_events_total{{{HERE},result=~".*hit|miss|coalesced"}}{RATE}))',
                        "hits",
                    ),
                ),
                unit="percentunit",
                least=None,
                most=1,
            ),
            Panel(
                "Cached bytes",
                (Query(f"sum by (instance) (N_route_cache_bytes{{{HERE}}})", "{{instance}}"),),
                unit="bytes",
            ),
            Panel("Drops by cause", (counted("route_cache_drops_total", "cause"),), unit="ops"),
            Panel(
                "From a change to its application",
                quantiles("route_freshness_seconds"),
                unit="s",
                steps=((QUICK_S, "red"),),
            ),
            Panel("Stale answers", (counted("stale_serve_total"),), unit="reqps"),
            Panel("Checks against the tables", (counted("consistency_checks_total", "result"),), unit="ops"),
        ),
    ),
    Row(
        "Brokers",
        (
            Panel(
                "Active by cluster and role",
                (stored("active_brokers", "cluster, role"),),
            ),
            Panel(
                "Topics",
                (stored("topics", "cluster"),),
            ),
            Panel("Queues", (stored("queues", "cluster, mode"),)),
            Panel(
                "Age of heartbeats",
                (Query(f"max by (cluster, broker, broker_id) (N_broker_heartbeat_age_seconds{{{THERE}}})"),),
                unit="s",
                kind="heatmap",
            ),
            Panel(
                "Brokers",
                (stored("broker_up", "cluster, broker, broker_id"),),
                kind="table",
                about="Up while the lease runs or is held; down after it, for a day if it left without unregistering.",
                texts=(("1", "up", "green"), ("0", "down", "red")),
            ),
            Panel(
                "Without a master",
                (
                    Query(f"max by (cluster) (N_brokers_without_master{{{THERE}}})", "{{cluster}} brokers"),
                    Query(
                        f"max by (cluster) (N_topics_without_writable_master{{{THERE}}})",
                        "{{cluster}} topics, writable",
                    ),
                ),
            ),
            Panel("Drained", (stored("drained_brokers", "cluster"),)),
            Panel(
                "Flapping", (stored("flapping_brokers", "cluster"),), about="From the pipeline's report flap."
            ),
            Panel("Registrations by result", (counted("registration_events_total", "result"),), unit="ops"),
            Panel("Heartbeats", (counted("heartbeats_total", "kind"),), unit="ops"),
            Panel("Conflicts of identity", (several("identity_conflicts_total", "kind"),), about=WITHIN),
        ),
    ),
    Row(
        "Expiry",
        (
            Panel("Removals by cause", (several("unregistration_events_total", "cause"),), about=WITHIN),
            Panel(
                "From the end of a lease until routes leave the member out",
                quantiles("lease_hide_delay_seconds"),
                unit="s",
                steps=((1, "red"),),
            ),
            Panel("From the end of a lease to its event", quantiles("expiry_record_delay_seconds"), unit="s"),
            Panel(
                "Oldest ended lease without its event",
                (stored("expiry_lag_seconds", "", NS),),
                unit="s",
                steps=((15, "red"),),
            ),
            Panel(
                "From a member's end until it is noticed", quantiles("detection_latency_seconds"), unit="s"
            ),
            Panel("Probes", (several("probes_total", "result"),), about=WITHIN),
            Panel(
                "Leases held",
                (stored("expiry_held", "ns", NS),),
                kind="state-timeline",
                texts=(("0", "by their time", "green"), ("1", "held", "orange")),
            ),
        ),
    ),
    Row(
        "Changes",
        (
            Panel(
                "Changes by kind and cause",
                (busy(several("route_changes_total", "kind, cause")),),
                about=WITHIN,
            ),
            Panel("Writes of operators by kind", (several("admin_writes_total", "op"),), about=WITHIN),
            Panel(
                "HTTP requests by status",
                (counted("http_requests_total", "status"),),
                unit="reqps",
            ),
        ),
    ),
    Row(
        "Store",
        (
            Panel(
                "Redis answers",
                (Query(f"min by (instance) (N_redis_up{{{HERE}}})", "{{instance}}"),),
                kind="state-timeline",
                texts=(("1", "answers", "green"), ("0", "no answer", "red")),
            ),
            Panel(
                "Round trips by script, p99",
                (
                    Query(
                        "histogram_quantile(0.99, sum by (le, script) (rate("
                        f"N_redis_command_duration_seconds_bucket{{{HERE}}}{RATE}))) > 0",
                        "{{script}}",
                    ),
                ),
                unit="s",
                steps=((0.01, "red"),),
            ),
            Panel("Errors", (several("redis_errors_total", "kind"),), about=WITHIN),
            Panel("Reconnects", (several("redis_reconnects_total", ""),), about=WITHIN),
            Panel("Entries of the stream", (stored("events_stream_length", "", NS),)),
            Panel("Memory of the stream", (stored("events_stream_bytes", "", NS),), unit="bytes"),
            Panel("Entries that consumers have not", (stored("events_consumer_lag", "consumer", NS),)),
            Panel(
                "Limits",
                (stored("limit_used_ratio", "limit", NS),),
                unit="percentunit",
                most=1,
                steps=((0.8, "red"),),
            ),
            Panel(
                "Clocks of workers against that of Redis",
                (Query(f"max by (instance) (N_redis_clock_offset_seconds{{{HERE}}})", "{{instance}}"),),
                unit="s",
                about="Ahead if positive. Leases and events go by the clock of Redis alone.",
                least=None,
            ),
        ),
    ),
    Row(
        "Jobs, pipeline",
        (
            Panel(
                "Runs by result",
                (busy(several("task_runs_total", "task, result")),),
                about=WITHIN,
            ),
            Panel(
                "Since the last success",
                (
                    Query(
                        f"time() - max by (task) (N_task_last_success_timestamp_seconds{{{NS}}})", "{{task}}"
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Jobs that wait",
                (Query(f"max by (queue) (N_task_queue_depth{{{HERE}}})", "{{queue}}"),),
            ),
            Panel(
                "Pipeline: how old what it has not yet",
                (stored("pipeline_lag_seconds", "pipeline", NS),),
                unit="s",
            ),
            Panel(
                "Pipeline: since the last success",
                (
                    Query(
                        f"time() - max by (pipeline) (N_pipeline_last_success_timestamp_seconds{{{NS}}})",
                        "{{pipeline}}",
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Availability by window",
                (stored("availability_ratio", "cluster, window"),),
                unit="percentunit",
                least=None,
                most=1,
            ),
        ),
    ),
    Row(
        "Processes",
        (
            Panel(
                "CPU",
                (
                    Query(
                        "sum by (pod, container) (rate("
                        f'container_cpu_usage_seconds_total{{container!=""}}{RATE}) {PODS})',
                        "{{pod}} {{container}}",
                    ),
                ),
                about="Of the kubelet: processes do not count it.",
            ),
            Panel(
                "Memory",
                (
                    Query(
                        f'sum by (pod, container) (container_memory_working_set_bytes{{container!=""}} {PODS})',
                        "{{pod}} {{container}}",
                    ),
                ),
                unit="bytes",
                about="Of the kubelet: processes do not count it.",
            ),
            Panel(
                "Restarts",
                (
                    Query(
                        f"sum by (pod, container) (increase(kube_pod_container_status_restarts_total[1h]) {PODS})",
                        "{{pod}} {{container}}",
                    ),
                ),
                about="Of kube-state-metrics, within an hour.",
            ),
            Panel("Lag of loops", quantiles("loop_lag_seconds"), unit="s"),
            Panel("Workers", (Query(f"sum by (role) (N_workers{{{HERE}}})", "{{role}}"),)),
            Panel(
                "Versions",
                (
                    Query(
                        f"count by (version, wire) (N_build_info{{{NS}}})", "{{version}} (RocketMQ {{wire}})"
                    ),
                ),
                kind="stat",
            ),
        ),
    ),
)
ANNOTATIONS: Final = (
    (
        "Members expired or lost",
        "orange",
        f'sum by (cause) (increase(N_route_changes_total{{{NS},kind="broker_removed",cause=~"expired|lost"}}[1m])) > 0',
        "{{cause}}",
    ),
    (
        "Version",
        "blue",
        f"count by (version) (N_build_info{{{NS}}}) unless count by (version) (N_build_info{{{NS}}} offset 5m)",
        "{{version}}",
    ),
)
"""Name, colour, query and text of each."""
VARIABLES: Final = (
    ("ns", "label_values(rocketmq_nameserver_up, ns)"),
    ("cluster", f"label_values(N_active_brokers{{{NS}}}, cluster)"),
    ("instance", f"label_values(N_workers{{{NS}}}, instance)"),
)
