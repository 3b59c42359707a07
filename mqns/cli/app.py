"""All commands of `mqns`."""

from typing import Final

from mqns.cli import (
    access,
    agent,
    clusters,
    config,
    drain_list,
    drains,
    events,
    kv,
    mirror,
    mqadmin,
    permissions,
    ping,
    routes,
    server_settings,
    topics,
    watch,
)
from mqns.cli.backup import command as backup
from mqns.cli.commands import add_common_options, new_app
from mqns.cli.doctor import command as doctor
from mqns.cli.drift import command as drift
from mqns.cli.variables import misspelt

LOOK_PANEL: Final = "Look"
CHANGE_PANEL: Final = "Change"
BACKUP_PANEL: Final = "Back up"
MQADMIN_PANEL: Final = "As mqadmin has them"

BEGIN: Final = """RocketMQ name servers at a shell: Java's, and redis-namesrv's.

\b
Begin with:
  mqns -n 10.0.0.1 brokers           the brokers that are registered at a name server
  mqns -n 10.0.0.1 routes TopicTest  the brokers of a topic
  mqns doctor 10.0.0.1 10.0.0.2      what is wrong with name servers and brokers
  mqns routes -h                     what a command does, and its options
"""

app = new_app(BEGIN)
add_common_options(app, misspelt)
for group in (routes, clusters, drain_list, topics, server_settings, watch, events, ping, doctor, drift):
    group.add(app, LOOK_PANEL)
access.add_look(app, LOOK_PANEL)
for group in (kv, permissions, drains, config, access, agent, mirror):
    group.add(app, CHANGE_PANEL)
backup.add(app, BACKUP_PANEL)
mqadmin.add(app, MQADMIN_PANEL)
