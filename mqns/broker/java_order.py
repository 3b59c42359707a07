"""The iteration order of Java's hash maps.

No peer depends on it; with it, the bytes of a registration equal those of a Java broker."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from rocketmq_remoting.java_hash import java_hash

T = TypeVar("T")


def in_java_order(table: Mapping[str, T], buckets: int) -> dict[str, T]:
    """Return the entries by bucket, those of one bucket in their order. `buckets` is a power of two."""
    return {name: table[name] for name in sorted(table, key=lambda name: _spread(name) & buckets - 1)}


def grown(entries: int, buckets: int) -> int:
    """Return the buckets of a map that started with `buckets`: doubled at each load of three quarters."""
    while entries >= buckets * 3 // 4:
        buckets *= 2
    return buckets


def copied(entries: int) -> int:
    """Return the buckets of a ConcurrentHashMap that was constructed from another map."""
    return 2 * _power_of_two(entries + entries // 2 + 1)


@lru_cache(maxsize=1 << 14)
def _spread(name: str) -> int:
    """Return the spread hash of a name (HashMap.hash); cached, since it takes a µs per name and table."""
    code = java_hash(name) & 0xFFFFFFFF
    return code ^ code >> 16


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
