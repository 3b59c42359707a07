"""The catalogue of metrics: the one place for their names, labels and meanings (docs/metrics.md shows it)."""

from collections.abc import Mapping
from typing import Final

from metrics.metric import DELAY, LATENCY, OTHER, SIZE, Label, Merge, Metric, Scope
from registry.doctor.findings import FINDINGS
from registry.drift import KINDS
from registry.events.entry import EventKind
from registry.options.catalogue import GROWTH_LIMITS
from registry.scripts import names_of_scripts
from registry.task_times import TASKS
from rocketmq_remoting.codes import RequestCode

PER_PEER: Final = frozenset({34, 35, 40, 47, 905})
"""Requests between clients and brokers, and the push: none of a name server."""
REQUEST_CODE: Final = Label(
    "request_code", (*(str(int(code)) for code in RequestCode if code not in PER_PEER), OTHER)
)
TIMED_CODES: Final = ("103", "104", "105", "322", "904", OTHER)
RESULT: Final = Label(
    "result", ("ok", "not_found", "error", "busy", "unsupported", "denied", "go_away", "oneway")
)
REMOTING: Final = (Scope.REMOTING,)
STORE: Final = (Scope.STORE,)
JOBS: Final = (Scope.JOBS,)
OF_REQUESTS: Final = (Scope.REMOTING, Scope.HTTP)
ALL_PROCESSES: Final = (Scope.REMOTING, Scope.HTTP, Scope.JOBS)
CAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    EventKind.STREAM_STARTED: ("empty_store", "stream_lost"),
    EventKind.BROKER_REGISTERED: ("first", "join", "takeover", "switch", "revive", "mirror"),
    EventKind.BROKER_UPDATED: ("register", "repair", "mirror"),
    EventKind.BROKER_REMOVED: (
        "unregistered",
        "expired",
        "lost",
        "closed",
        "replaced",
        "switched",
        "evicted",
        "mirror",
    ),
    EventKind.TOPICS_CHANGED: (
        *("register", "topic_register", "topic_delete", "wipe", "restore", "acting", "mirror"),
    ),
    EventKind.MAPPINGS_CHANGED: ("register",),
    EventKind.KV_CHANGED: ("put", "delete", "import"),
    EventKind.SETTINGS_CHANGED: ("update", "start"),
    EventKind.HOLD_CHANGED: ("outage", "mass_expiry", "released", "clock_back"),
    EventKind.DRAIN_CHANGED: ("drain", "undrain", "drain_end", "wipe", "restore"),
    EventKind.ACCESS_CHANGED: ("created", "rotated", "revoked", "restored", "expired", "rules"),
    EventKind.ACCESS_DENIED: ("denied",),
    EventKind.CONFLICT_SEEN: (
        *("two_clusters", "two_names", "state_version", "stale_unregister", "ownership", "two_addresses"),
    ),
    EventKind.TABLES_REPAIRED: ("brokers", "topics", "mappings", "keys"),
    EventKind.DRIFT_CHANGED: ("compared", "deleted"),
}
"""The causes of each kind of event; there may be others, which are counted as OTHER."""
CLUSTER: Final = Label("cluster")

REQUESTS: Final = Metric(
    "requests_total",
    "counter",
    (REQUEST_CODE, RESULT),
    REMOTING,
    "Requests done, by their answers: not_found is 17 and 22, busy 2, unsupported 3, denied 16, go_away 1500, error "
    "all others; oneway has none.",
)
CACHED_REQUESTS: Final = Metric(
    "cached_requests_total",
    "counter",
    (Label("request_code", ("103", "105", "106", "322", "904")),),
    REMOTING,
    "Those of requests_total that a cache answered by their bytes, without decoding them.",
)
REQUEST_DURATION: Final = Metric(
    "request_duration_seconds",
    "histogram",
    (Label("request_code", TIMED_CODES),),
    REMOTING,
    "From the whole frame to the answer that is handed to the socket. Of what a cache answers by its bytes, each 16th "
    "read is timed and counts 16 times.",
    buckets=LATENCY,
)
REQUEST_BYTES: Final = Metric("request_bytes_total", "counter", (), REMOTING, "Bytes read from peers.")
RESPONSE_BYTES: Final = Metric("response_bytes_total", "counter", (), REMOTING, "Bytes written to peers.")
INFLIGHT: Final = Metric("inflight_requests", "gauge", (), REMOTING, "Requests that wait for the store.")
CONNECTIONS: Final = Metric(
    "active_connections",
    "gauge",
    (Label("role", ("broker", "client", "admin", "unknown")),),
    REMOTING,
    "Open connections: broker, over which one has registered; admin, that has asked for lists or changes; client, of "
    "any other request; unknown, none yet.",
)
CONNECTION_EVENTS: Final = Metric(
    "connection_events_total",
    "counter",
    (
        Label(
            "event",
            (
                *("accepted", "closed_peer", "closed_idle", "closed_slow", "closed_error", "drained"),
                *("over_limit", "tls_failed"),
            ),
        ),
    ),
    REMOTING,
    "Connections accepted, and ended: by the peer, for silence, for what came or was read too slowly, by bytes that "
    "are no frame or a fault, by the end of the worker, over a limit, without a TLS session.",
)
DECODE_ERRORS: Final = Metric(
    "decode_errors_total",
    "counter",
    (Label("reason", ("frame", "header", "body", "crc", "too_big")),),
    REMOTING,
    "What peers sent that cannot be read.",
)
ADMISSION_REJECTED: Final = Metric(
    "admission_rejected_total",
    "counter",
    (Label("class", ("route", "broker", "admin")),),
    REMOTING,
    "Requests answered busy because too many waited: lookups; registrations, heartbeats and all others; lists and "
    "changes of topics.",
)
LOOP_LAG: Final = Metric(
    "loop_lag_seconds",
    "histogram",
    (),
    REMOTING,
    "Lateness of a timer of 100 ms, or of 250 while no peer sends anything.",
    buckets=LATENCY,
)

ROUTE_CACHE_EVENTS: Final = Metric(
    "route_cache_events_total",
    "counter",
    (Label("result", ("hit", "negative_hit", "miss", "coalesced", "discarded", "oversize")),),
    REMOTING,
    "Lookups by what the cache had: a route, the knowledge that there is none, nothing, a question under way; replies "
    "that were not kept, since their topic changed meanwhile or they are too long.",
)
ROUTE_CACHE_BYTES: Final = Metric("route_cache_bytes", "gauge", (), REMOTING, "What cached routes take.")
ROUTE_CACHE_ENTRIES: Final = Metric("route_cache_entries", "gauge", (), REMOTING, "Cached routes.")
ROUTE_CACHE_DROPS: Final = Metric(
    "route_cache_drops_total",
    "counter",
    (Label("cause", ("event", "size", "hole", "rollback", "incarnation", "unreadable", "settings")),),
    REMOTING,
    "Times that cached replies were dropped: by an event, one for want of room, all by a break of the stream, all by a "
    "change of settings.",
)
STALE_SERVE: Final = Metric(
    "stale_serve_total", "counter", (), REMOTING, "Lookups answered from the cache while the store was away."
)
FOLLOWER_CONNECTED: Final = Metric(
    "follower_connected",
    "gauge",
    (),
    REMOTING,
    "1 while every worker follows the stream of events, and what it has applied is less than 5 s behind its end.",
    merge=Merge.LEAST,
)
PROBES: Final = Metric(
    "probes_total",
    "counter",
    (Label("result", ("reachable", "refused", "silent")),),
    REMOTING,
    "Probes of brokers whose last connection closed.",
)

REGISTRATION_RESULT: Final = Label("result", ("new", "changed", "unchanged", "rejected", "conflict"))
REGISTRATIONS: Final = Metric(
    "registration_events_total",
    "counter",
    (REGISTRATION_RESULT,),
    OF_REQUESTS,
    "Registrations (103, and over HTTP) by what came of them: the member was not there before; a change was written; "
    "only its lease was renewed; an error was answered, by which a log line names the broker and the reason; another "
    "address has its id with a higher stateVersion.",
)
REGISTRATION_DURATION: Final = Metric(
    "registration_duration_seconds",
    "histogram",
    (REGISTRATION_RESULT,),
    OF_REQUESTS,
    "From the whole registration to its answer. Without those that are answered at once: one that a cache knows by its "
    "bytes and whose lease was renewed just now, and one that is refused since too many wait.",
    buckets=LATENCY,
)
REGISTRATION_BODY: Final = Metric(
    "registration_body_bytes",
    "histogram",
    (),
    REMOTING,
    "Bodies of registrations as they came, compressed or not.",
    buckets=SIZE,
)
HEARTBEATS: Final = Metric(
    "heartbeats_total",
    "counter",
    (Label("kind", ("103", "322", "904", "http")),),
    OF_REQUESTS,
    "Accepted heartbeats, by their request: registrations are some, and those of unknown members none. `http` has both "
    "that came over HTTP.",
)
LIMIT: Final = Label(
    "limit",
    (
        *(key for key in GROWTH_LIMITS if key != "maxOwnersOfMember"),  # at which the oldest goes
        *("clientRequestThreadPoolQueueCapacity", "defaultThreadPoolQueueCapacity"),
        *("unRegisterBrokerQueueCapacity", "maxConnections", "maxConnectionsPerIp"),
        *("httpMaxConnections", "httpMaxWatchers", "httpHeadMaxBytes", "httpBodyMaxBytes", "httpHeldBytes"),
        *("httpReadsPerSecond", "httpWritesPerSecond"),
    ),
)
LIMIT_REFUSALS: Final = Metric(
    "limit_refusals_total",
    "counter",
    (LIMIT,),
    OF_REQUESTS,
    "Requests and connections refused at a limit, by the option that sets it.",
)

SECURITY_EVENTS: Final = Metric(
    "security_events_total",
    "counter",
    (
        Label("operation", ("authn", "authz", "tls", "config")),
        Label("result", ("allowed", "denied", "expired")),
    ),
    OF_REQUESTS,
    "What came of checks of access: each proof (authn); each request that the rules refuse, also where it is answered "
    "since accessMode=observe, and each of the classes admin and config that they admit (authz); TLS handshakes; "
    "reloads of principals (config). `expired` is what would have been allowed before its end.",
)

ACCESS_EXPIRY: Final = Metric(
    "access_expiry_timestamp_seconds",
    "gauge",
    (Label("kind", ("key", "token", "cert")),),
    OF_REQUESTS,
    "When the first ACL key (with the last of its secrets), bearer token or client certificate ends: of keys, tokens "
    "that are good still, and certificates that open connections have shown. Absent where none ends, infinite once "
    "none does any more.",
    merge=Merge.LEAST,
)
ACCESS_RELOAD: Final = Metric(
    "access_file_last_reload_successful",
    "gauge",
    (),
    OF_REQUESTS,
    "1 while what is in force of the access file, and of the secrets that it names, is what these have: 0 once one "
    "process has not taken a change, and goes on with what they had before. Absent without an access file.",
    merge=Merge.LEAST,
)
REDIS_UP: Final = Metric(
    "redis_up",
    "gauge",
    (),
    ALL_PROCESSES,
    "1 while the store answers every process: 0 if the last request of one got no answer.",
    merge=Merge.LEAST,
)
REDIS_COMMAND_DURATION: Final = Metric(
    "redis_command_duration_seconds",
    "histogram",
    (Label("script", (*names_of_scripts(), "read", OTHER)),),
    ALL_PROCESSES,
    "Round trips to the store, for each script or command in them, as the client sees them.",
    buckets=LATENCY,
)
REDIS_ERRORS: Final = Metric(
    "redis_errors_total",
    "counter",
    (Label("kind", ("timeout", "connection", "readonly", "oom", "busy", OTHER)),),
    ALL_PROCESSES,
    "Requests to the store that failed.",
)
REDIS_RECONNECTS: Final = Metric(
    "redis_reconnects_total", "counter", (), ALL_PROCESSES, "Times that the store answers a process again."
)
REDIS_CLOCK_OFFSET: Final = Metric(
    "redis_clock_offset_seconds",
    "gauge",
    (),
    REMOTING,
    "This machine's clock less that of Redis.",
    merge=Merge.LAST,
)

ROUTE_FRESHNESS: Final = Metric(
    "route_freshness_seconds",
    "histogram",
    (),
    REMOTING,
    "From the id of an event to its application in this worker; resolution 1 ms.",
    buckets=DELAY,
)
ROUTE_CHANGES: Final = Metric(
    "route_changes_total",
    "counter",
    (Label("kind", (*(kind for kind in EventKind if kind != EventKind.CHECKPOINT), OTHER)), Label("cause")),
    JOBS,
    "Events, checkpoints left out. Of all schedulers the one counts that has the claim of the walk over the tables "
    "([below](#counts-of-events)).",
)
UNREGISTRATIONS: Final = Metric(
    "unregistration_events_total",
    "counter",
    (Label("cause", (*CAUSES[EventKind.BROKER_REMOVED], OTHER)),),
    JOBS,
    "Members that left, by cause; counted as route_changes_total.",
)
IDENTITY_CONFLICTS: Final = Metric(
    "identity_conflicts_total",
    "counter",
    (Label("kind", (*CAUSES[EventKind.CONFLICT_SEEN], "takeover", OTHER)),),
    JOBS,
    "Claims to what another member has, and takeovers of an id; `ownership`: what ownershipGuard refused; "
    "`two_addresses`, and `two_clusters` of action `refused`: what identityConflicts=refuse did; of these one a minute "
    "of a member and claimant. Counted as route_changes_total.",
)
ADMIN_OPS: Final[Mapping[tuple[str, str], str]] = {
    (EventKind.TOPICS_CHANGED, "wipe"): "wipe",
    (EventKind.TOPICS_CHANGED, "restore"): "restore",
    (EventKind.TOPICS_CHANGED, "topic_register"): "topic_register",
    (EventKind.TOPICS_CHANGED, "topic_delete"): "topic_delete",
    (EventKind.BROKER_REMOVED, "evicted"): "evict",
    (EventKind.KV_CHANGED, "put"): "kv_put",
    (EventKind.KV_CHANGED, "delete"): "kv_delete",
    (EventKind.KV_CHANGED, "import"): "kv_import",
    (EventKind.SETTINGS_CHANGED, "update"): "settings_update",
    (EventKind.HOLD_CHANGED, "released"): "hold_release",
    (EventKind.DRAIN_CHANGED, "drain"): "drain",
    (EventKind.DRAIN_CHANGED, "undrain"): "undrain",
    (EventKind.ACCESS_CHANGED, "created"): "access_create",
    (EventKind.ACCESS_CHANGED, "rotated"): "access_rotate",
    (EventKind.ACCESS_CHANGED, "revoked"): "access_revoke",
    (EventKind.ACCESS_CHANGED, "restored"): "access_restore",
}
"""Operators' acts, by the kind and cause of their entries."""
ADMIN_WRITES: Final = Metric(
    "admin_writes_total",
    "counter",
    (Label("op", tuple(ADMIN_OPS.values())), Label("actor_kind", ("wire", "http", OTHER))),
    JOBS,
    "Operators' acts that changed something, by what they came over; counted as route_changes_total.",
)
STALE_UNREGISTERS: Final = Metric(
    "stale_unregister_fenced_total",
    "counter",
    (),
    JOBS,
    "Unregistrations of an id that another address has, which stays; counted as route_changes_total.",
)
EXPIRY_RECORD_DELAY: Final = Metric(
    "expiry_record_delay_seconds",
    "histogram",
    (),
    JOBS,
    "From the end of a lease to its event; counted as route_changes_total.",
    buckets=DELAY,
)
DETECTION_LATENCY: Final = Metric(
    "detection_latency_seconds",
    "histogram",
    (Label("cause", ("expired", "lost", "closed")),),
    JOBS,
    "From the last sign of a member (expired), or the end of its last connection (lost, closed), until routes left it "
    "out; counted as route_changes_total.",
    buckets=DELAY,
)
LEASE_HIDE_DELAY: Final = Metric(
    "lease_hide_delay_seconds",
    "histogram",
    (),
    REMOTING,
    "From the end of a lease until this worker leaves the member out.",
    buckets=DELAY,
)
TASK: Final = Label("task", TASKS)
TASK_RUNS: Final = Metric(
    "task_runs_total", "counter", (TASK, Label("result", ("ok", "failed"))), JOBS, "Runs of periodic jobs."
)
TASK_DURATION: Final = Metric(
    "task_duration_seconds",
    "histogram",
    (TASK,),
    JOBS,
    "How long a run of a periodic job took.",
    buckets=DELAY,
)
TASK_LAST_SUCCESS: Final = Metric(
    "task_last_success_timestamp_seconds",
    "gauge",
    (TASK,),
    STORE,
    "When a periodic job ended well last, whichever process ran it.",
)
TASK_INTERVAL: Final = Metric(
    "task_interval_seconds", "gauge", (TASK,), STORE, "How often a periodic job is to run."
)
QUEUE: Final = Label("queue", ("upkeep", "pipeline-runs"))
TASK_QUEUE_DEPTH: Final = Metric(
    "task_queue_depth",
    "gauge",
    (QUEUE,),
    JOBS,
    "Jobs that wait, as a scheduler sees it.",
    merge=Merge.LAST,
)
EVENTS_TRIMMED: Final = Metric(
    "events_trimmed_total",
    "counter",
    (Label("reason", ("passed", "cap", "audit")),),
    JOBS,
    "Entries that the job trimmed: that all consumers have, that there was no memory for, and copies of operators'.",
)
TABLE_REPAIRS: Final = Metric(
    "table_repairs_total",
    "counter",
    (Label("table", ("brokers", "members", "topics", "mappings", "keys")),),
    JOBS,
    "Rows of the tables that were put right, and keys of a wrong type.",
)

BROKER: Final = (CLUSTER, Label("broker"), Label("broker_id"))
CONSISTENCY_CHECKS: Final = Metric(
    "consistency_checks_total",
    "counter",
    (Label("result", ("match", "mismatch", "unanswered")),),
    JOBS,
    "Lookups that a scheduler makes at checkAddress, and compares with the tables.",
)
CLUSTERS: Final = Metric("clusters", "gauge", (), STORE, "Clusters that have a broker.")
ACTIVE_BROKERS: Final = Metric(
    "active_brokers",
    "gauge",
    (CLUSTER, Label("role", ("master", "slave"))),
    STORE,
    "Members whose lease runs, or is held.",
)
BROKERS_WITHOUT_MASTER: Final = Metric(
    "brokers_without_master", "gauge", (CLUSTER,), STORE, "Broker names of which slaves alone live."
)
TOPICS: Final = Metric(
    "topics",
    "gauge",
    (CLUSTER,),
    STORE,
    "Topics of the brokers of a cluster, as a scheduler counted them last; absent where none did for ten minutes.",
)
QUEUES: Final = Metric(
    "queues",
    "gauge",
    (CLUSTER, Label("mode", ("read", "write"))),
    STORE,
    "Queues of all topics at all brokers, counted as topics.",
)
TOPICS_WITHOUT_WRITABLE_MASTER: Final = Metric(
    "topics_without_writable_master",
    "gauge",
    (CLUSTER,),
    STORE,
    "Topics that no producer can write to, for the masters are gone, drained or wiped of write permission, counted as "
    "topics. A topic that is read-only at a broker that others write to is none.",
)
DRAINED_BROKERS: Final = Metric(
    "drained_brokers",
    "gauge",
    (CLUSTER,),
    STORE,
    "Broker names whose drain is in force, as `GET /v1/drains` lists them; names that are gone are of no cluster.",
)
FLAPPING_BROKERS: Final = Metric(
    "flapping_brokers",
    "gauge",
    (CLUSTER,),
    STORE,
    "Broker names of which a slot comes and goes, from the report flap of the pipeline.",
)
KV_KEYS: Final = Metric("kv_keys", "gauge", (Label("kv_namespace"),), STORE, "Keys of each namespace of KV.")
BROKER_UP: Final = Metric(
    "broker_up",
    "gauge",
    BROKER,
    STORE,
    "1 while a member's lease runs or is held, 0 after it, and for a day where it left without unregistering.",
)
BROKER_HEARTBEAT_AGE: Final = Metric(
    "broker_heartbeat_age_seconds", "gauge", BROKER, STORE, "Since the last accepted heartbeat of a member."
)
BROKER_WRITE_WIPED: Final = Metric(
    "broker_write_wiped",
    "gauge",
    BROKER[:2],
    STORE,
    "1 while a broker name is drained, or has topics of which none has write permission, counted as topics.",
)
BROKER_TOPICS: Final = Metric("broker_topics", "gauge", BROKER[:2], STORE, "Topics of a broker name.")
EXPIRY_LAG: Final = Metric(
    "expiry_lag_seconds",
    "gauge",
    (),
    STORE,
    "For how long the oldest ended lease is without its event; routes leave its member out meanwhile.",
)
EXPIRY_HELD: Final = Metric("expiry_held", "gauge", (), STORE, "1 while leases are held.")
EVENTS_SEQUENCE: Final = Metric(
    "events_sequence",
    "gauge",
    (),
    STORE,
    "The number of the newest event; it falls with a new incarnation only.",
)
EVENTS_INCARNATION: Final = Metric(
    "events_incarnation_timestamp_seconds", "gauge", (), STORE, "When the stream of events began."
)
EVENTS_STREAM_LENGTH: Final = Metric(
    "events_stream_length", "gauge", (), STORE, "Entries of the stream of events."
)
EVENTS_STREAM_BYTES: Final = Metric(
    "events_stream_bytes", "gauge", (), STORE, "Memory of the stream of events, as Redis estimates it."
)
CONSUMER: Final = Label("consumer")
EVENTS_CONSUMER_LAG: Final = Metric(
    "events_consumer_lag", "gauge", (CONSUMER,), STORE, "Events that a consumer has not."
)
EVENTS_CONSUMER_AGE: Final = Metric(
    "events_consumer_age_seconds", "gauge", (CONSUMER,), STORE, "Since a consumer last said what it has."
)
DOCTOR_FINDINGS: Final = Metric(
    "doctor_findings",
    "gauge",
    (Label("finding", FINDINGS),),
    STORE,
    "How many brokers, clusters, limits, jobs or consumers `GET /v1/doctor` has a finding about, or 1 where it is "
    "about the store, as a scheduler counted them last; absent where none did for ten minutes.",
)

COMPARISON: Final = Label("comparison")
DRIFT_DIFFERENCES: Final = Metric(
    "drift_differences",
    "gauge",
    (COMPARISON, Label("kind", KINDS)),
    STORE,
    "Differences of two name servers, as a comparison found them last (`mqns drift`); absent where one did not answer, "
    "and once the result is stale.",
)
DRIFT_UNREACHABLE: Final = Metric(
    "drift_unreachable",
    "gauge",
    (COMPARISON,),
    STORE,
    "How many of the name servers did not answer the last comparison; absent once the result is stale.",
)
DRIFT_AGE: Final = Metric(
    "drift_age_seconds",
    "gauge",
    (COMPARISON,),
    STORE,
    "Since a comparison of name servers was reported last.",
)
DRIFT_VALID: Final = Metric(
    "drift_valid_seconds",
    "gauge",
    (COMPARISON,),
    STORE,
    "How old the result of a comparison of name servers is when it is stale.",
)

LIMIT_USED: Final = Metric(
    "limit_used_ratio",
    "gauge",
    (Label("limit", ("maxBrokers", "maxTopics", "maxKvNamespaces", "eventsMaxBytes")),),
    STORE,
    "How near the namespace is to a limit; at 1 what is new is refused, or the oldest events go.",
)

PIPELINE_LAG: Final = Metric(
    "pipeline_lag_seconds",
    "gauge",
    (Label("pipeline"),),
    STORE,
    "How old what the pipeline has not yet: `landing:<name>`, the oldest entry that has not landed, 0 where all have; "
    "`reports`, the time up to which they go.",
)
PIPELINE_LAST_SUCCESS: Final = Metric(
    "pipeline_last_success_timestamp_seconds",
    "gauge",
    (Label("pipeline"),),
    STORE,
    "When a landing last said what it has, and when the reports were put in force; by the Redis clock.",
)
FOLD_MISMATCHES: Final = Metric(
    "events_fold_mismatches",
    "gauge",
    (),
    STORE,
    "Members, and topics of brokers, by which the newest checkpoint round differs from the pipeline's tables though no "
    "entry was missing before it: a defect, or a change by another hand. Absent until a run has compared one.",
)
AVAILABILITY: Final = Metric(
    "availability_ratio",
    "gauge",
    (CLUSTER, Label("window", ("1h", "24h", "7d", "30d"))),
    STORE,
    "Up / (up + down) in the last hour, day, week or month, from the report of availability.",
)
ERROR_BUDGET_REMAINING: Final = Metric(
    "error_budget_remaining_ratio",
    "gauge",
    (CLUSTER,),
    STORE,
    "What is left of the error budget, below 0 once it is overspent, from the report slo. Absent while less than a day "
    "of the window is known: the first restart would overspend it.",
)

METHOD: Final = Label("method", ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER))
ROUTE: Final = Label("route")
HTTP_REQUESTS: Final = Metric(
    "http_requests_total",
    "counter",
    (METHOD, ROUTE, Label("status")),
    (Scope.HTTP,),
    "Requests over HTTP, by route as in the OpenAPI document; `other` are those of none.",
)
TRANSPORTS: Final = ("sse", "longpoll")
"""How a watcher gets messages."""
WATCHERS: Final = Metric(
    "watchers",
    "gauge",
    (Label("transport", TRANSPORTS),),
    (Scope.HTTP,),
    "Connections that watch the event stream.",
)
WATCH_EVENTS: Final = Metric(
    "watch_events_total",
    "counter",
    (Label("result", ("sent", "reset", "dropped")),),
    (Scope.HTTP,),
    "Messages that watchers were sent: changes, and resets, before which entries may be missing. `dropped` are "
    "watchers that were cut off, since they did not read.",
)
WATCH_DELAY: Final = Metric(
    "watch_delay_seconds",
    "histogram",
    (),
    (Scope.HTTP,),
    "From the record of a change until the last watcher of a process that had read all was sent it.",
    buckets=DELAY,
)
HTTP_REQUEST_DURATION: Final = Metric(
    "http_request_duration_seconds",
    "histogram",
    (METHOD, ROUTE),
    (Scope.HTTP,),
    "From the whole request to its answer.",
    buckets=LATENCY,
)

NAMESERVER_UP: Final = Metric(
    "rocketmq_nameserver_up",
    "gauge",
    (),
    STORE,
    "1 while `/readyz` would say that the name server is ready, else 0, also while the store is away.",
    prefix="",
)
BUILD_INFO: Final = Metric(
    "build_info",
    "gauge",
    (Label("version"), Label("wire")),
    STORE,
    "Always 1: the release, and that of RocketMQ whose version headers have.",
)
TLS_CERT_EXPIRY: Final = Metric(
    "tls_cert_expiry_timestamp_seconds",
    "gauge",
    (Label("listener"),),
    REMOTING,
    "When the certificate in use ends, or one of its chain; absent without TLS, and of a self-signed certificate.",
    merge=Merge.LEAST,
)
WORKERS: Final = Metric(
    "workers",
    "gauge",
    (Label("role", ("remoting", "http", "jobs", "scheduler")),),
    ALL_PROCESSES,
    "Processes that are alive.",
)

CATALOGUE: Final = (
    *(REQUESTS, CACHED_REQUESTS, REQUEST_DURATION, REQUEST_BYTES, RESPONSE_BYTES, INFLIGHT),
    *(CONNECTIONS, CONNECTION_EVENTS, DECODE_ERRORS, ADMISSION_REJECTED, LOOP_LAG),
    *(ROUTE_CACHE_EVENTS, ROUTE_CACHE_BYTES, ROUTE_CACHE_ENTRIES, ROUTE_CACHE_DROPS, STALE_SERVE),
    *(FOLLOWER_CONNECTED, PROBES),
    *(REGISTRATIONS, REGISTRATION_DURATION, REGISTRATION_BODY, HEARTBEATS, LIMIT_REFUSALS),
    *(SECURITY_EVENTS, ACCESS_EXPIRY, ACCESS_RELOAD),
    *(ROUTE_FRESHNESS, ROUTE_CHANGES, UNREGISTRATIONS, IDENTITY_CONFLICTS, STALE_UNREGISTERS),
    *(EXPIRY_RECORD_DELAY, DETECTION_LATENCY, LEASE_HIDE_DELAY),
    *(REDIS_UP, REDIS_COMMAND_DURATION, REDIS_ERRORS, REDIS_RECONNECTS, REDIS_CLOCK_OFFSET),
    *(
        TASK_RUNS,
        TASK_DURATION,
        TASK_LAST_SUCCESS,
        TASK_INTERVAL,
        TASK_QUEUE_DEPTH,
        EVENTS_TRIMMED,
        TABLE_REPAIRS,
        ADMIN_WRITES,
        CONSISTENCY_CHECKS,
    ),
    *(CLUSTERS, ACTIVE_BROKERS, BROKERS_WITHOUT_MASTER, DRAINED_BROKERS, FLAPPING_BROKERS, KV_KEYS),
    *(TOPICS, QUEUES, TOPICS_WITHOUT_WRITABLE_MASTER),
    *(BROKER_UP, BROKER_HEARTBEAT_AGE, BROKER_WRITE_WIPED, BROKER_TOPICS, EXPIRY_LAG, EXPIRY_HELD),
    *(EVENTS_SEQUENCE, EVENTS_INCARNATION, EVENTS_STREAM_LENGTH, EVENTS_STREAM_BYTES),
    *(EVENTS_CONSUMER_LAG, EVENTS_CONSUMER_AGE, LIMIT_USED, DOCTOR_FINDINGS),
    *(DRIFT_DIFFERENCES, DRIFT_UNREACHABLE, DRIFT_AGE, DRIFT_VALID),
    *(PIPELINE_LAG, PIPELINE_LAST_SUCCESS, AVAILABILITY, ERROR_BUDGET_REMAINING, FOLD_MISMATCHES),
    *(WATCHERS, WATCH_EVENTS, WATCH_DELAY),
    *(HTTP_REQUESTS, HTTP_REQUEST_DURATION, NAMESERVER_UP, BUILD_INFO, TLS_CERT_EXPIRY, WORKERS),
)
