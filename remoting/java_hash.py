"""Java's hash of a text: clients send it for tags, and the order of what Java takes from its maps follows it."""


def java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 code units, wrapped to signed 32 bits. `java_hash("TagA") == 2598919`"""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = 31 * code + (high << 8 | low) & 0xFFFFFFFF
    return code - (1 << 32) if code & 0x80000000 else code
