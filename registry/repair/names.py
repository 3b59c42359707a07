"""Names that are no UTF-8: no peer could register them, and no script takes them."""

from collections.abc import Iterable

from registry.damage.texts import is_text


def readable(names: Iterable[str]) -> list[str]:
    """Return the names that are."""
    return [name for name in names if is_text(name)]


def spellings(name: str) -> tuple[bytes, bytes]:
    """Return the bytes that an unreadable name may come from."""
    escaped = (
        char.encode(errors="surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass")
        for char in name
    )
    return b"".join(escaped), name.encode(errors="surrogatepass")
