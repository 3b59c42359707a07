"""What a caller is answered that is not the owner of the broker it names."""

from typing import Final

__all__ = ["not_owner"]

REMARK_MOST: Final = 200
"""Characters of a remark."""
ELLIPSIS: Final = "…"


def not_owner(name: str, actor: str) -> str:
    """Return the remark to a caller: one line of at most REMARK_MOST characters, in which a long name is cut."""
    start, end = "access denied: broker needs the owner of ", f"; caller {_plain(actor)[: REMARK_MOST // 2]}"
    most, shown = REMARK_MOST - len(start) - len(end), _plain(name)
    return start + (shown if len(shown) <= most else shown[: most - 1] + ELLIPSIS) + end


def _plain(text: str) -> str:
    """Return a text without what would begin another line, or is not to be seen."""
    return "".join(character if character.isprintable() else "?" for character in text)
