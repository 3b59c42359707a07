"""Puts a run's reports into Redis: written aside, then all of them put in force by one script."""

import secrets
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from redis import Redis, RedisCluster

from mqpipeline.serving import names
from mqpipeline.serving.entries import Entry, entries, fitting
from mqpipeline.serving.results import Results, Run

Client: TypeAlias = Redis | RedisCluster
LIMIT_BYTES: Final = 5_000_000
META_BYTES: Final = 20_000
TTL_MS: Final = 7 * 24 * 3_600_000
ASIDE_MS: Final = 600_000
"""What a run that was killed has written aside is gone after so long."""
AT_ONCE: Final = 500

PUT_IN_FORCE = """
-- KEYS: meta in force, then of each key the one aside and the one in force. ARGV: their prefix, TTL (ms)
local time = redis.call('TIME')
for i = 2, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[i]) == 0 then return redis.error_reply('GONE ' .. KEYS[i]) end
end
for name in string.gmatch(redis.call('HGET', KEYS[1], 'names') or '', '%S+') do
  redis.call('UNLINK', ARGV[1] .. name)
end
for i = 2, #KEYS, 2 do
  redis.call('RENAME', KEYS[i], KEYS[i + 1])
  redis.call('PEXPIRE', KEYS[i + 1], ARGV[2])
end
redis.call('HSET', KEYS[1], 'published_ms', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
"""


class Served(msgspec.Struct, frozen=True):
    """How much is in force now: entries, and those that did not fit."""

    entries: int
    left_out: int


def publish(client: Client, namespace: str, run: Run, results: Results) -> Served:
    """Put a namespace's reports in force in place of the run before; readers see one of both, whole.

    Raises redis-py's errors; then the run before stays in force, and what was written aside goes by itself."""
    fitted, left_out = fitting(entries(results), LIMIT_BYTES - META_BYTES)
    prefix = names.prefix(namespace)
    aside = f"{prefix}run:{run.run}:{secrets.token_hex(4)}:"
    key_names = list(dict.fromkeys(entry.key for entry in fitted))
    _write(client, aside, [*fitted, *_meta(run, results, key_names, left_out)])
    pairs = [key for name in (names.META, *key_names) for key in (aside + name, prefix + name)]
    client.register_script(PUT_IN_FORCE)(keys=[prefix + names.META, *pairs], args=[prefix, TTL_MS])
    return Served(entries=len(fitted), left_out=left_out)


def _meta(run: Run, results: Results, key_names: Sequence[str], left_out: int) -> Iterator[Entry]:
    provisional = any(row.get("provisional") for rows in results.tables.values() for row in rows)
    values = msgspec.structs.asdict(run) | {
        "provisional": provisional,
        "left_out": left_out,
        "names": " ".join(key_names),
    }
    return (
        Entry(names.META, field, str(int(value)) if isinstance(value, bool) else str(value))
        for field, value in values.items()
        if value is not None
    )


def _write(client: Client, prefix: str, written: Sequence[Entry]) -> None:
    for start in range(0, len(written), AT_ONCE):
        hashes: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        sets: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for key, field, value in written[start : start + AT_ONCE]:
            if isinstance(value, str):
                hashes[prefix + key][field] = value
            else:
                sets[prefix + key][field] = value
        with client.pipeline(transaction=True) as pipe:  # so that no key is ever without its TTL
            for key, fields in hashes.items():
                pipe.hset(key, mapping=fields)
            for key, scores in sets.items():
                pipe.zadd(key, scores)
            for key in (*hashes, *sets):
                pipe.pexpire(key, ASIDE_MS)
            pipe.execute()
