"""Bloom filters: sets of texts in few bits, which never deny a text that is in them."""

from collections.abc import Collection, Iterator
from hashlib import blake2b
from typing import Final

BITS_OF_TERM: Final = 12
HASHES: Final = 6
"""With so many bits and hashes a text that is not in a filter seems to be in it once in some 300 times."""
HALF: Final = 32
LOW: Final = (1 << HALF) - 1


def hash_of(term: str) -> int:
    """Return 64 bits, the same ones in every process."""
    return int.from_bytes(blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def bloom(terms: Collection[str]) -> bytes:
    """Return a filter of these texts, as long as their number asks for; empty without one."""
    bits = bytearray((len(terms) * BITS_OF_TERM + 7) // 8)
    for term in terms:
        for place in _places(hash_of(term), len(bits)):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def may_have(bits: bytes, term_hash: int) -> bool:
    """Return whether the text of this hash may be in a filter, which is not empty."""
    return all(bits[place >> 3] >> (place & 7) & 1 for place in _places(term_hash, len(bits)))


def _places(term_hash: int, length: int) -> Iterator[int]:
    """Yield bits of a filter of so many bytes: two halves of a hash do for any number (Kirsch, Mitzenmacher)."""
    first, step, count = term_hash & LOW, term_hash >> HALF | 1, length * 8
    for number in range(HASHES):
        yield (first + number * step) % count
