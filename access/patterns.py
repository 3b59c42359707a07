"""Patterns of names, in which `*` is any run of characters, none too; case counts.

They are no regular expressions, of which one with many `*` may take minutes: here each text between two of them is
searched once."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import msgspec

from rocketmq_remoting.cooperative import Cooperative

__all__ = ["ANY", "Pattern", "Patterns", "all_match"]

ANY: Final = "*"


class Pattern(NamedTuple):
    """One pattern, from `of`: `parts` are its texts between each `*`, for each part between two bounds."""

    text: str
    bound: str
    parts: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, text: str, bound: str = "") -> "Pattern":
        """Return the pattern that a text is. `bound` is a character that `*` does not pass, "" for none."""
        return cls(text, bound, tuple(tuple(part.split(ANY)) for part in _split(text, bound)))

    @property
    def is_exact(self) -> bool:
        """Whether it is one name."""
        return ANY not in self.text

    def matches(self, name: str) -> bool:
        """Return whether the whole name is one of these."""
        parts = _split(name, self.bound)
        return len(parts) == len(self.parts) and all(map(_matches, self.parts, parts))


class Patterns(msgspec.Struct, frozen=True):
    """Several patterns, of which one that matches is enough; without any no name matches."""

    exact: frozenset[str]
    others: tuple[Pattern, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Patterns":
        """Return the patterns that texts are."""
        patterns = [Pattern.of(text) for text in texts]
        exact = frozenset(pattern.text for pattern in patterns if pattern.is_exact)
        return cls(exact, tuple(pattern for pattern in patterns if not pattern.is_exact))

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the patterns as they are written, sorted."""
        return tuple(sorted((*self.exact, *(pattern.text for pattern in self.others))))

    def match(self, name: str) -> bool:
        """Return whether a pattern matches the name."""
        return name in self.exact or any(pattern.matches(name) for pattern in self.others)

    def match_all(self, names: Iterable[str] | None) -> bool:
        """Return whether each name is matched; None is all names that there may be."""
        if names is None:
            return any(pattern.text == ANY for pattern in self.others)
        return all(map(self.match, names))


def all_match(limits: Collection[Patterns], names: Iterable[str]) -> Cooperative[bool]:
    """Return whether each of these matches each name, a name a step: there may be thousands of both."""
    for name in names:
        if not all(patterns.match(name) for patterns in limits):
            return False
        yield
    return True


def _split(text: str, bound: str) -> list[str]:
    return text.split(bound) if bound else [text]


def _matches(texts: tuple[str, ...], name: str) -> bool:
    first, last = texts[0], texts[-1]
    if len(texts) == 1:
        return name == first
    at, end = len(first), len(name) - len(last)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for text in texts[1:-1]:
        at = name.find(text, at, end)
        if at < 0:
            return False
        at += len(text)
    return True
