"""The class of each endpoint, for the rules of access (docs/access.md): what it reveals or changes decides."""

from collections.abc import Mapping
from typing import Final

from access.classes import OPEN, AccessClass

__all__ = ["CONSOLE", "HTTP"]

OPEN_TO_ALL: Final = (
    "health.healthz",
    "health.readyz",
    "openapi.spec",
    "docs.index",
    "docs.docs",
    "docs.docs_file",
    "access.whoami",
    "discovery.name_servers",  # clients cannot send tokens, and learn from it the address of the name server alone
    "discovery.name_servers_of_unit",
)
CONSOLE: Final = (
    *("console.overview", "console.login_page", "console.login", "console.logout"),
    *("console.kv_namespaces", "console.add_kv_value", "console.kv_table", "console.clear_kv_table"),
    *("console.kv_value", "console.change_kv_value"),
    *("console.settings", "console.setting", "console.change_setting"),
    *("console.brokers_page", "console.broker_page", "console.drain_broker", "console.end_drain"),
    *(
        "console.write_permission",
        "console.unregister_member",
        "console.drains_page",
        "console.end_listed_drain",
    ),
    *("console.topics_page", "console.topic_page", "console.set_queues", "console.delete_topic"),
    *("console.events", "console.between", "console.audit", "console.findings"),
    *("console.comparisons_page", "console.forget_comparison"),
    *("console.reports", "console.report", "console.history"),
    *("console.static_file", "console.no_page"),
)
"""Pages: what they show and change they ask the API for, by the right of their caller."""
READ: Final = (
    *("clusters.clusters", "clusters.cluster", "brokers.brokers", "brokers.broker", "routes.route"),
    *("topics.topics", "topics.topic", "kv.namespaces", "kv.table", "kv.value"),
    *("drains.drains", "drains.get_drain", "limits.limits"),
)
BROKER: Final = (
    "registrations.register_broker",
    "registrations.heartbeat",
    "registrations.unregister_broker",
)
ADMIN: Final = (
    *("registrations.write_permission", "drains.put_drain", "drains.delete_drain", "hold.release_hold"),
    *("topics.put_topic", "topics.remove_topic"),
    *("kv.put_table", "kv.clear_table", "kv.put_value", "kv.delete_value"),
    *("drift.put_comparison", "drift.delete_comparison"),
    *("mirror.register_mirrored", "mirror.renew_mirrored_brokers", "mirror.remove_mirrored_broker"),
    "events.ask_for_checkpoint",  # adds entries to the stream, as many as there are brokers
)
CONFIG: Final = (
    *("settings.settings", "settings.update_settings", "options.options", "options.option"),
    *("access.principals", "access.create_token", "access.rotate_token", "access.revoke", "access.restore"),
)
AUDIT: Final = (
    *("events.events", "watch.watch", "console.changes", "audit.audit", "doctor.doctor", "repairs.repairs"),
    *("drift.comparisons", "drift.comparison"),
    *("history.diff", "history.route_at", "history.diff_of_topic", "history.permissions"),
    *("reports.reports", "reports.availability", "reports.churn", "reports.conflicts", "reports.detect"),
    *(
        "reports.flap",
        "reports.incidents",
        "reports.repair",
        "reports.skew",
        "reports.slo",
        "reports.timeouts",
    ),
)
GRANTS: Final = frozenset({"access.create_token", "access.rotate_token", "access.revoke", "access.restore"})
"""What gives access or takes it: it outlives accessMode=observe, and so is refused while observing, too."""
HTTP: Final[Mapping[str, AccessClass]] = {
    **dict.fromkeys((*OPEN_TO_ALL, *CONSOLE), OPEN),
    **dict.fromkeys(READ, AccessClass.READ),
    **dict.fromkeys(BROKER, AccessClass.BROKER),
    **dict.fromkeys(ADMIN, AccessClass.ADMIN),
    **dict.fromkeys(CONFIG, AccessClass.CONFIG),
    **dict.fromkeys(AUDIT, AccessClass.AUDIT),
    "metrics.metrics": AccessClass.METRICS,
}
"""By Flask's endpoint, a view of a blueprint. What is not here is refused."""
