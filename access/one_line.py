"""Text of others as one line."""

from typing import Final

__all__ = ["one_line"]

CUT: Final = "..."


def one_line(text: str, most: int) -> str:
    """Return a text with `?` for what cannot be printed, cut to `most` characters."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= most else f"{text[: most - len(CUT)]}{CUT}"
