"""Entries of a name server's event stream, as many as a test wants."""

from typing import Any

from redis import Redis

DAY_MS = 86_400_000
INC = 20_454 * DAY_MS  # 2026-01-01
STREAM = "ns:{default}:events"


def emit(
    redis: Redis, first: int, last: int, *, namespace: str = "default", inc: int = INC, every_ms: int = 1
) -> None:
    """Entries `first` to `last` by seq; the id's ms is `inc` + seq * `every_ms`."""
    with redis.pipeline(transaction=False) as pipe:
        for seq in range(first, last + 1):
            fields: Any = {
                "v": 1,
                "kind": "kv_changed",
                "inc": inc,
                "seq": seq,
                "cause": "put",
                "key": "k",
            }
            pipe.xadd(f"ns:{{{namespace}}}:events", fields, id=f"{inc + seq * every_ms}-0")
        pipe.execute()
