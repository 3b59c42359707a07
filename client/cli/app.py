"""All commands of `mqns`."""

from typing import Final

from client.cli import clusters, config, kv, permissions, routes, topics
from client.cli.commands import accept_everywhere, new_app

LOOKING: Final = "Look"
CHANGING: Final = "Change"

app = new_app("RocketMQ name servers at the command line: Java's, and those of redis-namesrv.")
accept_everywhere(app)
for group in (routes, clusters, topics):
    group.add(app, LOOKING)
for group in (kv, permissions, config):
    group.add(app, CHANGING)
