"""Texts of the store: what is no UTF-8 is damage, since no peer could have sent it, and no script takes it."""

from collections.abc import Iterable


def is_text(value: str) -> bool:
    """Whether the value is text; other bytes come as halves of surrogate pairs (registry/store/connect.py)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def readable(names: Iterable[str]) -> list[str]:
    """Return the names that are text."""
    return [name for name in names if is_text(name)]


def spellings(name: str) -> tuple[bytes, bytes]:
    """Return the bytes that a name which is no text may come from."""
    escaped = (
        char.encode(errors="surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass")
        for char in name
    )
    return b"".join(escaped), name.encode(errors="surrogatepass")
