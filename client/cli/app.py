"""All commands of `mqns`."""

from typing import Final

from client.cli import agent, clusters, config, drains, kv, mqadmin, permissions, ping, routes, topics, watch
from client.cli.commands import accept_everywhere, new_app
from client.cli.doctor import command as doctor

LOOKING: Final = "Look"
CHANGING: Final = "Change"
AS_MQADMIN: Final = "As mqadmin has them"

app = new_app("RocketMQ name servers at the command line: Java's, and those of redis-namesrv.")
accept_everywhere(app)
for group in (routes, clusters, topics, watch, ping, doctor):
    group.add(app, LOOKING)
for group in (kv, permissions, drains, config, agent):
    group.add(app, CHANGING)
mqadmin.add(app, AS_MQADMIN)
