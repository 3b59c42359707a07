"""What two name servers may print differently: each rule with its reason. All else must be the same."""

import re

from msgspec import Struct

from testbed.rocketmq.admin import Output
from testbed.rocketmq.servers import NameServer


class Rule(Struct, frozen=True):
    """Replaces what `pattern` finds, in the output of `commands` (of all, if none are named)."""

    why: str
    pattern: str
    replacement: str
    commands: tuple[str, ...] = ()


RULES = (
    Rule("topics and groups made through one server and through the other", r"-(java|ours)\b", "-SIDE"),
    Rule("each server has a port of its own", r"(listenPort +=  )\d+", r"\1PORT", ("getNamesrvConfig",)),
    Rule("brokers know both servers", r"(namesrvAddr +=  ).*", r"\1NAMESRVS", ("getBrokerConfig",)),
    Rule(
        "what brokers count and measure moves on between two questions",
        r"(V\d+_\d+_\d+) .*?( (true|false))?$|(broker-\S+)( +\d+){4}$",
        r"\1\4 COUNTED\2",
        ("clusterList",),
    ),
    Rule("likewise", r"( : ).*", r"\1COUNTED", ("brokerStatus",)),
    Rule("likewise", r" +(?<![.:\d])\d+(\.\d+)?\b(?![.:])|(Offset\t)\d+", r"\2 COUNTED", ("haStatus",)),
    Rule(
        "likewise",
        r" +\d+(\.\d+)?(?= |$)|TPS: .*",
        " COUNTED",
        ("statsAll", "topicStatus", "consumerProgress"),
    ),
    Rule(
        "of a topic that several clusters have, mqadmin names the cluster that comes first in hash order",
        r"^Cluster-\d+-\d+-\d+ +",
        "CLUSTER ",
        ("topicList",),
    ),
    Rule(
        "a message has an id and a place of its own",
        r"\b[0-9A-F]{32}\b",
        "ID",
        ("sendMessage", "queryMsgByKey"),
    ),
    Rule("likewise", r"@\d+ *$", "@PLACE", ("queryMsgByKey",)),
    Rule("the time of a message", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", "TIME", ("topicStatus",)),
    Rule("an epoch is the time at which a mapping was made", r'("epoch":)\d{13}', r"\1TIME", ("topicRoute",)),
    Rule("mqadmin names its files by the clock", r"-\d{13}\b|\b\d{13}/", "TIME"),
)
UNORDERED = frozenset({"topicList", "statsAll", "consumerProgress"})
"""Their lines come in the order of a hash table: Java's own order changes with its history, too."""


def normalised(command: str, output: Output, server: NameServer) -> list[str]:
    """The lines of both streams without what may differ."""
    text = f"{output.out}\n[stderr]\n{output.err}".replace(server.address, "NAMESRV")
    text = text.replace(str(server.process.folder), "SERVER")
    for rule in RULES:
        if not rule.commands or command in rule.commands:
            text = re.sub(rule.pattern, rule.replacement, text, flags=re.MULTILINE)
    lines = text.splitlines()
    return sorted(lines) if command in UNORDERED else lines
