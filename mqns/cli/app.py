"""All commands of `mqns`."""

from typing import Final

from mqns.cli import (
    agent,
    clusters,
    config,
    drain_list,
    drains,
    kv,
    mqadmin,
    permissions,
    ping,
    routes,
    server_settings,
    topics,
    watch,
)
from mqns.cli.commands import add_common_options, new_app
from mqns.cli.doctor import command as doctor

LOOK_PANEL: Final = "Look"
CHANGE_PANEL: Final = "Change"
MQADMIN_PANEL: Final = "As mqadmin has them"

app = new_app("RocketMQ name servers at the command line: Java's, and those of redis-namesrv.")
add_common_options(app)
for group in (routes, clusters, drain_list, topics, server_settings, watch, ping, doctor):
    group.add(app, LOOK_PANEL)
for group in (kv, permissions, drains, config, agent):
    group.add(app, CHANGE_PANEL)
mqadmin.add(app, MQADMIN_PANEL)
