"""Secrets in memory: what no log line, error or encoded value shows."""

import hmac
from typing import NoReturn

__all__ = ["Secret"]


class Secret:
    """A text that only `reveal` returns: not its repr, and msgspec and pickle refuse to encode it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        """Return whether the texts are equal, in constant time."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self._text), _bytes(other._text))

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not copied")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
