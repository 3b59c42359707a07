"""Spans of requests, jobs and round trips to the store, for OpenTelemetry (docs/traces.md).

Imported only where the option `traces` is on: its modules need the extra `otel`."""
