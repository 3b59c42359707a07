"""Settings of a Redis under which tables may be lost or refused: one is refused, others are logged at the start.

The one that is refused is looked for while schedulers run, too."""

from collections.abc import Iterator, Mapping

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


def evicting_policy() -> Plan[str | None]:
    """Return the policy by which the store evicts keys now, None when it evicts none: it may be changed at run time."""
    return _evicting_policy((yield call("INFO", "memory")))


def _evicting_policy(info: Mapping[str, object]) -> str | None:
    """Return the policy by which keys are evicted, None when none are."""
    policy = str(info.get("maxmemory_policy", "noeviction"))
    return policy if int(str(info.get("maxmemory", 0))) and policy != "noeviction" else None


def _warnings(info: Mapping[str, object]) -> Iterator[str]:
    def number(name: str) -> int:
        return int(str(info.get(name, 0)))

    version = str(info.get("redis_version", ""))
    if "valkey_version" not in info and _numbers(version) < OLDEST:
        yield f"redis_version is {version}: Redis 7.0 or newer, or Valkey, is needed"
    if info.get("role") != "master":
        yield "role is not master: registrations are refused here; point redisUrl at the master"
    bound, used = number("maxmemory"), number("used_memory")
    if policy := _evicting_policy(info):
        yield f"maxmemory-policy is {policy}: when memory is short, routes vanish; set noeviction"
    if bound and used > NEARLY_FULL * bound:
        yield (
            f"{used} of {bound} bytes of maxmemory are used: registrations are refused when it is full; "
            "raise maxmemory"
        )
    if not number("aof_enabled"):
        yield "appendonly is off: a restart forgets what was registered since the last snapshot; set appendonly yes"
    if number("connected_slaves") and "min_slaves_good_slaves" not in info:
        yield (
            "min-replicas-to-write is 0: a master that is cut off from its replicas goes on taking registrations "
            "that are lost when another is chosen; set 1"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
