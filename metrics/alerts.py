"""The recording rules and alerts: the one place for their expressions (docs/alerts.md shows the alerts).

Facts of the store are the same at every HTTP worker, so they are aggregated with `max`; what processes count, with
`sum`. All combinations of closed labels are there from start with 0, so the first increase of a counter is seen."""

from typing import Final

from metrics.rules import Alert, Recording, Severity

__all__ = ["ALERTS", "RECORDINGS", "WINDOWS"]

PAGE, TICKET = Severity.PAGE, Severity.TICKET
WINDOWS: Final = ("5m", "30m", "1h", "6h", "3d")
FAILED: Final = 'N_requests_total{request_code="105",result=~"error|busy"}'
TEMPLATES: Final = (
    Recording(
        "ns:lookup_errors:ratio_rate",
        f"sum by (ns) (rate({FAILED}[WINDOW]))\n"
        '/ sum by (ns) (rate(N_requests_total{request_code="105",result!="denied"}[WINDOW]))',
    ),
    Recording(
        "ns:lookup_slow:ratio_rate",
        '1 - sum by (ns) (rate(N_request_duration_seconds_bucket{request_code="105",le="0.005"}[WINDOW]))\n'
        '/ sum by (ns) (rate(N_request_duration_seconds_count{request_code="105"}[WINDOW]))',
    ),
    Recording(
        "ns:visibility_slow:ratio_rate",
        '1 - sum by (ns) (rate(N_route_freshness_seconds_bucket{le="0.005"}[WINDOW]))\n'
        "/ sum by (ns) (rate(N_route_freshness_seconds_count[WINDOW]))",
    ),
    Recording(
        "ns:expiry_late:ratio_rate",
        '1 - sum by (ns) (rate(N_lease_hide_delay_seconds_bucket{le="1.0"}[WINDOW]))\n'
        "/ sum by (ns) (rate(N_lease_hide_delay_seconds_count[WINDOW]))",
    ),
    Recording(
        "ns:lookups:rate",
        'sum by (ns) (rate(N_requests_total{request_code="105"}[WINDOW]))',
    ),
)
RECORDINGS: Final = tuple(template.over(window) for template in TEMPLATES for window in WINDOWS)
"""Ratios of the objectives, and lookups per second, for each window."""

BUDGET: Final = 0.0001
"""The part of lookups that may fail in 30 days."""
FAILED_LEAST: Final = 10
KILLED: Final = "`brokers-killed-10`, `brokers-killed-50`, `brokers-killed-100`: brokers die"
SILENT_ROWS: Final = "`brokers-silent-10`, `brokers-silent-50`, `brokers-silent-100`"
SILENT: Final = f"{SILENT_ROWS}: brokers hang, or cannot reach the service"
NO_JOBS: Final = "`scheduler-dead`, `jobs-dead`: no scheduler, no jobs"
FAILING: Final = "Lookups fail"
DIFFERING: Final = "Name servers that should agree differ"
EXPIRED: Final = 'increase(N_unregistration_events_total{cause="expired"}'


def _burns(long: str, short: str, factor: float) -> str:
    """Return whether lookups fail so much faster than the budget allows, over a long time and still."""
    most = f"{factor:g} * {BUDGET}"
    return (
        f"ns:lookup_errors:ratio_rate{long} > {most} and ns:lookup_errors:ratio_rate{short} > {most}\n"
        f"and sum by (ns) (increase({FAILED}[{long}])) > {FAILED_LEAST}"
    )


_SERVICE: Final = (
    Alert(
        "Down",
        PAGE,
        "1m",
        "absent_over_time(rocketmq_nameserver_up[1h])\n"
        "or sum by (ns) (rocketmq_nameserver_up) == 0\n"
        "or group by (ns) (last_over_time(rocketmq_nameserver_up[1h])) unless group by (ns) (rocketmq_nameserver_up)",
        "No HTTP worker is ready, or none is scraped.",
        "The pods, then the store; clients go on with the routes that they have.",
        "Nothing is ready",
        why="A namespace that is scraped no more is in no sum: it fires for an hour because there were values before. "
        "Where nothing was scraped within an hour it fires without a label `ns`.",
    ),
    Alert(
        "NotReady",
        TICKET,
        "5m",
        "rocketmq_nameserver_up == 0",
        "An HTTP worker is not ready.",
        "`/readyz` of that worker names what is wrong.",
        "Nothing is ready",
        by=("ns", "instance"),
    ),
    Alert(
        "RedisDown",
        PAGE,
        "1m",
        "min by (ns) (N_redis_up) == 0",
        "A process gets no answer from the store.",
        "The store and the network to it; known routes are still served.",
        "Redis",
    ),
    Alert(
        "LookupBudgetFast",
        PAGE,
        "2m",
        _burns("1h", "5m", 14.4),
        "Lookups fail 14 times as often as the objective allows: a month's budget is spent in two days.",
        "The label `result` of `requests_total`: error is the store, busy is overload.",
        FAILING,
        unit="humanizePercentage",
        why="Where there are few lookups, one that fails is over any ratio: at least 10 have to fail in the longer "
        "window; the same for `LookupBudgetSlow` and `LookupBudgetLeak`.",
    ),
    Alert(
        "LookupBudgetSlow",
        PAGE,
        "15m",
        _burns("6h", "30m", 6),
        "Lookups fail 6 times as often as the objective allows: a month's budget is spent in five days.",
        "As for LookupBudgetFast.",
        FAILING,
        unit="humanizePercentage",
    ),
    Alert(
        "LookupBudgetLeak",
        TICKET,
        "1h",
        _burns("3d", "6h", 1),
        "Lookups fail more often than the objective allows.",
        "As for LookupBudgetFast, over days.",
        FAILING,
        unit="humanizePercentage",
    ),
    Alert(
        "LookupSlow",
        PAGE,
        "10m",
        "ns:lookup_slow:ratio_rate5m > 0.01 and ns:lookups:rate5m > 1",
        "Over 1 % of lookups take longer than 5 ms in the server.",
        "Lag of the loop, misses of the cache, CPU; add workers.",
        "Lookups are slow",
        unit="humanizePercentage",
        why="Below one lookup a second, three that are read from the store first are over the ratio.",
    ),
    Alert(
        "LookupNotFound",
        TICKET,
        "10m",
        'sum by (ns) (rate(N_requests_total{request_code="105",result="not_found"}[5m]))\n> 0.2 * ns:lookups:rate5m',
        "Over a fifth of lookups are for topics that do not exist.",
        "Whether a topic or its brokers are gone; the difference of routes of the last hour.",
        "Lookups of topics that do not exist",
    ),
    Alert(
        "WrongRoute",
        PAGE,
        "0m",
        'sum by (ns) (increase(N_consistency_checks_total{result="mismatch"}[10m])) > 0',
        "A worker answered a route that differs from the tables.",
        "The scheduler's log has topic and answer: keep the logs of the workers, then restart these.",
        "A wrong route",
    ),
    Alert(
        "FollowerLost",
        TICKET,
        "2m",
        "min by (ns, instance) (N_follower_connected) == 0\n"
        "or group by (ns, instance) (rocketmq_nameserver_up == 1) unless group by (ns, instance) (N_workers)",
        "A worker does not follow the stream of events, or is over 5 s behind it; or no process publishes metrics.",
        "The worker's connection to the stream; `/readyz` names it, or says by how much workers are behind. Then the "
        "folder of metrics.",
        "Only the event stream cannot be read",
        by=("ns", "instance"),
        why="Where the files in which processes publish are lost, `follower_connected` and all else that they count is "
        "absent, and no alert about it could fire: `workers` is there while any process publishes.",
    ),
    Alert(
        "VisibilitySlow",
        TICKET,
        "15m",
        "ns:visibility_slow:ratio_rate30m > 0.05\n"
        "and sum by (ns) (increase(N_route_freshness_seconds_count[30m])) > 100",
        "Over 5 % of changes reach workers later than after 5 ms.",
        "Load of the store, slow scripts.",
        "Changes reach workers late",
        unit="humanizePercentage",
        why="Of few changes one that is late is over the ratio: at least 100 have to be applied in 30 minutes, "
        "counted in each worker.",
    ),
)
_BROKERS: Final = (
    Alert(
        "NoWritableMaster",
        PAGE,
        "2m",
        "max by (ns, cluster) (N_topics_without_writable_master)\n"
        "> min by (ns, cluster) (min_over_time(N_topics_without_writable_master[1d]))",
        "Topics have no master that takes messages.",
        "Which brokers are down or drained.",
        "Topics without a writable master",
        by=("ns", "cluster"),
        why="Topics that are read only on purpose would page for ever: so their number is compared with the least of "
        "a day, and the alert ends after a day at the latest.",
    ),
    Alert(
        "BrokerExpired",
        TICKET,
        "0m",
        f"sum by (ns) ({EXPIRED}[10m])) > 0",
        "A broker's lease ended: it hangs, or cannot reach the service.",
        "Which one: the stream of events; then its host, and the network.",
        SILENT,
    ),
    Alert(
        "BrokerGone",
        TICKET,
        "5m",
        'sum by (ns) (increase(N_unregistration_events_total{cause=~"closed|lost"}[15m])) > 0\n'
        "and min by (ns) (N_broker_up) == 0",
        "A broker left with its connection, without unregistering, and is not back.",
        "Which one: `broker-gone` of the doctor; then its process and its host.",
        KILLED,
        why="Brokers that are started again are back before. The alert ends after a quarter of an hour; `broker_up` "
        "stays 0 for a day.",
    ),
    Alert(
        "MassExpiry",
        PAGE,
        "0m",
        f"sum by (ns) ({EXPIRED}[2m]))\n"
        "> 0.1 * sum by (ns) (max by (ns, cluster, role) (N_active_brokers offset 5m))\n"
        f"and sum by (ns) ({EXPIRED}[5m])) > 1.5",
        "Leases of over a tenth of the brokers ended within two minutes.",
        "Whether a zone or a network is lost; whether to hold leases.",
        SILENT,
        why="Of fewer than ten brokers one is over a tenth: at least two have to expire within five minutes. In two, "
        "`increase` makes up to 2 of a single one, where scrapes are a minute apart.",
    ),
    Alert(
        "BrokerFlapping",
        TICKET,
        "5m",
        "max by (ns, cluster) (N_flapping_brokers) > 0",
        "A broker comes and goes again and again.",
        "The report flap; drain the broker.",
        "Brokers that come and go",
        by=("ns", "cluster"),
    ),
    Alert(
        "ExpiryLag",
        TICKET,
        "2m",
        "max by (ns) (N_expiry_lag_seconds) > 15",
        "Ends of leases are not recorded.",
        "What the log says of it; job workers and schedulers. Routes are right all the same.",
        NO_JOBS,
        unit="humanizeDuration",
        why="Without jobs, workers record ends after 10 s (`TaskStalled` fires); without workers, leases are held "
        "(`Down`): it fires if the store refuses the record, as for want of a right.",
    ),
    Alert(
        "LeasesHeld",
        TICKET,
        "5m",
        "max by (ns) (N_expiry_held) == 1",
        "Leases are held: brokers that died meanwhile are still in routes.",
        "Whether the outage is over; whether `expiryHoldMillis` holds a mass expiry.",
        "Leases are held",
    ),
    Alert(
        "RegistrationRejected",
        TICKET,
        "5m",
        'sum by (ns) (rate(N_registration_events_total{result="rejected"}[5m])) > 0.05',
        "Registrations of brokers are refused.",
        "A worker's log line names the broker and the reason.",
        "Registrations are refused",
        why="Refusals for want of the store are among them.",
    ),
    Alert(
        "IdentityConflict",
        TICKET,
        "0m",
        "sum by (ns) (increase(N_identity_conflicts_total[10m])) > 2.5",
        "Brokers claim what another has: a name, an id or an address.",
        "The report conflicts, or entries `conflict_seen` of the stream of events.",
        "Two brokers have one name, id or address",
        why="2.5 is more than 2, and `increase` makes up to 2.2 of two.",
    ),
    Alert(
        "AccessDenied",
        TICKET,
        "5m",
        'sum by (ns) (rate(N_security_events_total{result="denied"}[5m])) > 1',
        "Requests are refused for want of a right, or credentials that are wrong.",
        "Audit, by actor and peer; the log, by network.",
        "Callers are refused",
        why="A request with a wrong credential counts twice: for what it shows and for what it asks.",
    ),
    Alert(
        "AccessFileRefused",
        TICKET,
        "1m",
        "min by (ns) (N_access_file_last_reload_successful) == 0",
        "The access file, or a secret that it names, was changed and is not taken: what it had before stays in force.",
        "The log line or the doctor's finding, which names the principal and the member. No process starts with it.",
        "The access file is not taken",
    ),
    Alert(
        "BudgetSpent",
        TICKET,
        "1h",
        "max by (ns, cluster) (N_error_budget_remaining_ratio) < 0",
        "A cluster was down for longer than its objective allows.",
        "The report of availability.",
        "An error budget is spent",
        by=("ns", "cluster"),
        unit="humanizePercentage",
    ),
)
_UPKEEP: Final = (
    Alert(
        "TaskStalled",
        TICKET,
        "2m",
        "time() - max by (ns, task) (N_task_last_success_timestamp_seconds)\n"
        "> 60 + 3 * max by (ns, task) (N_task_interval_seconds)",
        "A periodic job has not ended well for long.",
        "Queue depth, jobs that fail.",
        NO_JOBS,
        by=("ns", "task"),
        unit="humanizeDuration",
    ),
    Alert(
        "CertExpires",
        TICKET,
        "1h",
        "min by (ns, listener) (N_tls_cert_expiry_timestamp_seconds > 0) - time() < 14 * 86400",
        "A certificate ends within two weeks.",
        "How it is rotated.",
        "`certificate-rotation`: a new certificate",
        by=("ns", "listener"),
        unit="humanizeDuration",
        why="0 is a listener without a certificate.",
    ),
    Alert(
        "EventsCut",
        TICKET,
        "0m",
        'sum by (ns) (increase(N_events_trimmed_total{reason="cap"}[15m])) > 0',
        "Events were trimmed for want of memory, before all consumers had them or the retention was over.",
        "Which consumer is behind: its reports have a gap.",
        "Consumers of the event stream are behind",
    ),
    Alert(
        "ConsumerSilent",
        TICKET,
        "10m",
        "max by (ns, consumer) (N_events_consumer_age_seconds) > 3600",
        "A consumer of the stream of events has said nothing for an hour.",
        "Whether the pipeline runs; whether the consumer is retired.",
        "Consumers of the event stream are behind",
        by=("ns", "consumer"),
        unit="humanizeDuration",
        why="For a pipeline that runs by the hour; one that runs by the day needs a higher bound.",
    ),
    Alert(
        "SlowScript",
        TICKET,
        "10m",
        'sum by (ns, script) (rate(N_redis_command_duration_seconds_count{script!="read"}[5m]))\n'
        '- sum by (ns, script) (rate(N_redis_command_duration_seconds_bucket{script!="read",le="0.01"}[5m])) > 0.1',
        "A script of the store takes longer than 10 ms, again and again.",
        "`SLOWLOG`; no script may take 5 ms.",
        "Slow scripts",
        by=("ns", "script"),
    ),
    Alert(
        "FoldMismatch",
        TICKET,
        "0m",
        "max by (ns) (N_events_fold_mismatches) > 0",
        "A checkpoint disagrees with the tables that the pipeline derived from the events.",
        "A defect: keep the stream and the log.",
        "A checkpoint disagrees with the events",
        why="It is a gauge of the newest report: it is over once a later checkpoint agrees.",
    ),
)
_OTHERS: Final = (
    Alert(
        "Drift",
        TICKET,
        "5m",
        "sum by (ns, comparison) (max by (ns, comparison, kind) (N_drift_differences)) > 0",
        "Two name servers that are compared differ in brokers, topics, queues or KV.",
        "`GET /v1/drift`, which has some of the differences; then the doctor, asked about both.",
        DIFFERING,
        by=("ns", "comparison"),
    ),
    Alert(
        "DriftUnknown",
        TICKET,
        "5m",
        "max by (ns, comparison) (N_drift_unreachable) > 0\n"
        "or max by (ns, comparison) (N_drift_age_seconds) > max by (ns, comparison) (N_drift_valid_seconds)",
        "A comparison of two name servers gets no answer of one of them, or is not reported any more.",
        "`GET /v1/drift`, which has the reason; whether `mqns drift` runs, and what it logs.",
        DIFFERING,
        by=("ns", "comparison"),
        why="What the two say is not known then, and `Drift` does not fire. The second is older than "
        "its `validForSeconds`.",
    ),
)
ALERTS: Final = (*_SERVICE, *_BROKERS, *_UPKEEP, *_OTHERS)
