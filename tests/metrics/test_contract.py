"""The names, types and labels that dashboards and alerts of others rely on: what is gone or renamed breaks them."""

from metrics.catalogue import CATALOGUE
from metrics.metric import DELAY, LATENCY, SIZE

BUCKETS = {
    "L": (5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
    "D": (
        *(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
        *(2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
    ),
    "B": (256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216),
}
CONTRACT = """
requests_total c request_code result
cached_requests_total c request_code
request_duration_seconds L request_code
request_bytes_total c
response_bytes_total c
inflight_requests g
active_connections g role
connection_events_total c event
decode_errors_total c reason
admission_rejected_total c class
loop_lag_seconds L
route_cache_events_total c result
route_cache_bytes g
route_cache_entries g
route_cache_drops_total c cause
route_freshness_seconds D
follower_connected g
stale_serve_total c
route_changes_total c kind cause
consistency_checks_total c result
clusters g
active_brokers g cluster role
topics g cluster
queues g cluster mode
topics_without_writable_master g cluster
brokers_without_master g cluster
drained_brokers g cluster
flapping_brokers g cluster
kv_keys g kv_namespace
broker_up g cluster broker broker_id
broker_heartbeat_age_seconds g cluster broker broker_id
broker_write_wiped g cluster broker
broker_topics g cluster broker
registration_events_total c result
registration_duration_seconds L result
registration_body_bytes B
heartbeats_total c kind
unregistration_events_total c cause
stale_unregister_fenced_total c
probes_total c result
lease_hide_delay_seconds D
expiry_record_delay_seconds D
expiry_lag_seconds g
detection_latency_seconds D cause
expiry_held g
identity_conflicts_total c kind
redis_up g
redis_command_duration_seconds L script
redis_errors_total c kind
redis_reconnects_total c
redis_clock_offset_seconds g
events_sequence g
events_incarnation_timestamp_seconds g
events_stream_length g
events_stream_bytes g
events_trimmed_total c reason
events_consumer_lag g consumer
events_consumer_age_seconds g consumer
http_requests_total c method route status
http_request_duration_seconds L method route
admin_writes_total c op actor_kind
tls_cert_expiry_timestamp_seconds g listener
access_expiry_timestamp_seconds g kind
limit_used_ratio g limit
limit_refusals_total c limit
security_events_total c operation result
watchers g transport
watch_events_total c result
watch_delay_seconds D
table_repairs_total c table
task_runs_total c task result
task_duration_seconds D task
task_last_success_timestamp_seconds g task
task_interval_seconds g task
task_queue_depth g queue
pipeline_lag_seconds g pipeline
pipeline_last_success_timestamp_seconds g pipeline
availability_ratio g cluster window
error_budget_remaining_ratio g cluster
workers g role
build_info g version wire
rocketmq_nameserver_up g
"""
OUR_OWN = {
    *("access_file_last_reload_successful", "doctor_findings", "events_fold_mismatches"),
    *("drift_differences", "drift_unreachable", "drift_age_seconds", "drift_valid_seconds"),
}
"""What came later."""


def test_each_metric_has_the_name_type_and_labels_that_it_had() -> None:
    letters = {"counter": "c", "gauge": "g"}
    buckets = {bounds: letter for letter, bounds in BUCKETS.items()}
    catalogue = {
        " ".join((metric.name, letters.get(metric.type) or buckets[metric.buckets], *metric.label_names))
        for metric in CATALOGUE
        if metric.name not in OUR_OWN
    }
    assert catalogue == {*CONTRACT.strip().splitlines()}


def test_the_buckets_are_all_used() -> None:
    assert {LATENCY, DELAY, SIZE} == {*BUCKETS.values()}
