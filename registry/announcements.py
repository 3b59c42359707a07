"""At which addresses clients reach the remoting workers that are ready: each worker announces its own every second.

Only workers write them: clients whose only setting is `/rocketmq/nsaddr` go where these say."""

from typing import Final

from registry.clock import LATE_MS, TIME, now_ms, unix_ms
from registry.keys import Keys
from registry.options.addresses import addresses_of
from registry.plans import Batch, Plan, call

__all__ = ["announce", "ready_addresses"]

KEPT_MS: Final = 60_000
READ_MOST: Final = 1_000
"""Workers that are looked at."""


def announce(keys: Keys, worker: str, address: str) -> Plan[None]:
    """Note that a worker, which is ready now, is reached at `host:port`."""
    now = yield from now_ms()
    yield Batch(
        (
            call("ZADD", keys.announced, now, f"{address} {worker}"),
            call("ZREMRANGEBYSCORE", keys.announced, "-inf", now - KEPT_MS),
            call("PEXPIRE", keys.announced, KEPT_MS),
        )
    )


def ready_addresses(keys: Keys) -> Plan[tuple[str, ...]]:
    """Return the addresses of workers that announced them within LATE_MS, sorted, each once: several workers share
    one. A clock that went back makes none ready; what is no address, which no worker wrote, is left out."""
    time, rows = yield Batch((TIME, call("ZRANGE", keys.announced, 0, READ_MOST - 1, "WITHSCORES")))
    now = unix_ms(time)
    announced = {member.partition(" ")[0] for member, score in rows if abs(now - float(score)) <= LATE_MS}
    return tuple(sorted(filter(_is_address, announced)))


def _is_address(text: str) -> bool:
    try:
        return addresses_of(text) == (text,)
    except ValueError:
        return False
