"""Names of hosts as an option lists them, and whether a name is one of them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["is_listed", "names_of", "without_case"]

ALL: Final = "*"
LABEL: Final = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
ENTRY: Final = re.compile(rf"\.?{LABEL}(\.{LABEL})*")


@lru_cache(maxsize=64)
def names_of(text: str) -> frozenset[str]:
    """Return the entries of a list such as `ns.example.com, .svc.cluster.local`, without case. Raises ValueError that
    names a bad one."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if part != ALL and not ENTRY.fullmatch(without_case(part)):
            raise ValueError(f"{part!r} is no name of a host, no .suffix of some and not *")
    return frozenset(map(without_case, parts))


def without_case(name: str) -> str:
    """Return a name as it is compared: in small letters, without the dot that may end it (RFC 1034 section 3.1)."""
    return name.lower().removesuffix(".")


def is_listed(name: str, names: Iterable[str]) -> bool:
    """Return whether a name, without case, is an entry, or is below one that begins with a dot."""
    return any(entry in (name, ALL) or (entry[0] == "." and name.endswith(entry)) for entry in names)
