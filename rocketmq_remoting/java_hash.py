"""Java's String.hashCode, by which brokers filter tags."""

_BITS = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """`TagA` -> 2598919: over UTF-16 code units, wrapped to 32 bits and signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    total = 0
    for at in range(0, len(units), 2):
        total = (31 * total + (units[at] << 8 | units[at + 1])) & _BITS
    return total - (1 << 32) if total >> 31 else total
