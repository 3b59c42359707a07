"""Settings of a Redis under which tables may be lost or refused: one is refused, others are logged at the start.

The one that is refused is looked for while schedulers run, too."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import redis

from registry.plans import Plan, call

OLDEST = 7, 0
NEARLY_FULL = 0.8


def warnings(store: redis.Redis) -> list[str]:
    """Return what should be changed, a sentence each. Raises RedisError."""
    return [*_warnings(store.info())]


def refusal(store: redis.Redis, *, allow_evicting: bool) -> str | None:
    """Return why the name server does not start on this store, a sentence; None if it does. Raises RedisError."""
    policy = None if allow_evicting else _evicting_policy(store.info("memory"))
    return policy and (
        f"maxmemory-policy is {policy}: when memory is short, routes vanish; set noeviction, or "
        "allowEvictingStore=true to start on it all the same"
    )


class Memory(NamedTuple):
    """Bytes that count against `bound` (maxmemory; 0: none), and the policy by which keys are evicted, None if none."""

    used: int = 0
    bound: int = 0
    evicting_policy: str | None = None


def memory() -> Plan[Memory]:
    """Return the memory of the store now: its bound and policy may be changed at run time."""
    info: Mapping[str, object] = yield call("INFO", "memory")
    used = _number(info, "used_memory") - _number(info, "mem_not_counted_for_evict")
    return Memory(used, _number(info, "maxmemory"), _evicting_policy(info))


def replica_of() -> Plan[str | None]:
    """Return the master (host:port) of a store that is a read-only replica, None of one that takes writes."""
    info: Mapping[str, object] = yield call("INFO", "replication")
    if info.get("role") != "slave" or not _number(info, "slave_read_only"):
        return None
    return f"{info.get('master_host', '')}:{info.get('master_port', '')}"


def evicting_policy() -> Plan[str | None]:
    """Return the policy by which the store evicts keys now, None when it evicts none: it may be changed at run time."""
    return (yield from memory()).evicting_policy


def _evicting_policy(info: Mapping[str, object]) -> str | None:
    """Return the policy by which keys are evicted, None when none are."""
    policy = str(info.get("maxmemory_policy", "noeviction"))
    return policy if _number(info, "maxmemory") and policy != "noeviction" else None


def _number(info: Mapping[str, object], name: str) -> int:
    return int(str(info.get(name, 0)))


def _warnings(info: Mapping[str, object]) -> Iterator[str]:
    version = str(info.get("redis_version", ""))
    if "valkey_version" not in info and _numbers(version) < OLDEST:
        yield f"redis_version is {version}: Redis 7.0 or newer, or Valkey, is needed"
    if info.get("role") != "master":
        yield "role is not master: registrations are refused here; point redisUrl at the master"
    bound, used = _number(info, "maxmemory"), _number(info, "used_memory")
    if policy := _evicting_policy(info):
        yield f"maxmemory-policy is {policy}: when memory is short, routes vanish; set noeviction"
    if bound and used > NEARLY_FULL * bound:
        yield (
            f"{used} of {bound} bytes of maxmemory are used: registrations are refused when it is full; "
            "raise maxmemory"
        )
    if not _number(info, "aof_enabled"):
        yield "appendonly is off: a restart forgets what was registered since the last snapshot; set appendonly yes"
    if _number(info, "connected_slaves") and "min_slaves_good_slaves" not in info:
        yield (
            "min-replicas-to-write is 0: a master that is cut off from its replicas goes on taking registrations "
            "that are lost when another is chosen; set 1"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
