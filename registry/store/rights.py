"""The least rights of Redis users, as rules of `ACL SETUSER` (docs/redis.md).

`python -m registry.store.rights [NAMESPACE ...]` prints them.
"""

import sys
from collections.abc import Iterable

from registry.keys import Keys
from registry.store.connect import DEFAULT_NAMESPACE

SCRIPTS = ("eval", "evalsha")
IN_SCRIPTS_AND_PLANS = (
    *("del", "exists", "info", "memory|usage", "pexpire", "time", "type"),
    *("get", "incr", "set"),
    *("hdel", "hget", "hgetall", "hincrby", "hkeys", "hlen", "hmget", "hrandfield", "hscan", "hset"),
    *("sadd", "scard", "sismember", "smembers", "smismember", "srandmember", "srem", "sscan", "sunionstore"),
    *("xadd", "xlen", "xrange", "xrevrange", "xtrim"),
    *("zadd", "zcard", "zcount", "zmscore", "zrange", "zrangebyscore", "zrem", "zremrangebyscore", "zscan"),
    "zscore",
)
BY_CLIENTS = ("cluster|slots", "ping", "xread")
COMMANDS = tuple(sorted((*SCRIPTS, *IN_SCRIPTS_AND_PLANS, *BY_CLIENTS)))
QUEUE_RULES = (
    "resetkeys ~rq:* resetchannels &rq:* -@all +@read +@write +@pubsub +@transaction +@scripting +@connection "
    "-@admin -@dangerous +client|list +client|setname +info +time"
)
"""For RQ, whose commands differ between its versions."""

PIPELINE = (
    *(
        "echo",
        "evalsha",
        "exec",
        "exists",
        "get",
        "hget",
        "hset",
        "multi",
        "pexpire",
        "ping",
        "pttl",
        "rename",
    ),
    *("scan", "script|load", "set", "time", "unlink", "xrange", "xrevrange", "zadd"),
)


def store_rules(namespaces: Iterable[str] = (DEFAULT_NAMESPACE,)) -> str:
    """Return the rules for the name server of these namespaces."""
    return _rules(namespaces, COMMANDS)


def pipeline_rules(namespaces: Iterable[str] = (DEFAULT_NAMESPACE,)) -> str:
    """Return the rules for the pipeline of these namespaces."""
    return _rules(namespaces, PIPELINE)


def _rules(namespaces: Iterable[str], commands: Iterable[str]) -> str:
    keys = " ".join(f"~{Keys(namespace).prefix}*" for namespace in namespaces)
    return f"resetkeys {keys} resetchannels -@all {' '.join(f'+{command}' for command in commands)}"


if __name__ == "__main__":
    chosen = sys.argv[1:] or (DEFAULT_NAMESPACE,)
    print(f"ACL SETUSER namesrv on >PASSWORD {store_rules(chosen)}")
    print(f"ACL SETUSER namesrv-jobs on >PASSWORD {QUEUE_RULES}")
    print(f"ACL SETUSER namesrv-pipeline on >PASSWORD {pipeline_rules(chosen)}")
