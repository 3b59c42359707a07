"""The order in which Java's hash maps give what is in them.

No peer depends on it; but the bytes of a registration do, and with it they are those of a Java broker."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from remoting.java_hash import java_hash

T = TypeVar("T")


def in_java_order(table: Mapping[str, T], buckets: int) -> dict[str, T]:
    """The entries by bucket; those of one bucket as they come. `buckets` is a power of two."""
    return {name: table[name] for name in sorted(table, key=lambda name: _spread(name) & buckets - 1)}


def grown(entries: int, buckets: int) -> int:
    """The buckets of a map that had `buckets` when it was empty: doubled whenever three quarters are reached."""
    while entries >= buckets * 3 // 4:
        buckets *= 2
    return buckets


def copied(entries: int) -> int:
    """The buckets of a ConcurrentHashMap that took over all entries of another at once."""
    return 2 * _power_of_two(entries + entries // 2 + 1)


@lru_cache(maxsize=1 << 14)
def _spread(name: str) -> int:
    """What a bucket's number is cut from: tables are put in order again and again, and this takes µs a name."""
    code = java_hash(name) & 0xFFFFFFFF
    return code ^ code >> 16


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
