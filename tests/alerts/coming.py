"""Metrics that rules and dashboard use and that the catalogue has not yet, with their labels."""

from typing import Final

from metrics.catalogue import CATALOGUE

COMING: Final = {
    "topics": ("cluster",),
    "queues": ("cluster", "mode"),
    "topics_without_writable_master": ("cluster",),
    "admin_writes_total": ("op", "actor_kind"),
    "tls_cert_expiry_timestamp_seconds": ("listener",),
    "consistency_checks_total": ("result",),
    "events_fold_mismatches_total": (),
}
ABSENT: Final = COMING.keys() - {metric.name for metric in CATALOGUE}
"""Those of them that processes do not publish."""
