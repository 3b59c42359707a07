"""Ids of stream entries: `ms-n`, ordered as numbers."""

from typing import NamedTuple

LAST_N = (1 << 64) - 1


class Id(NamedTuple):
    """An entry's place in its stream; `BEFORE_ALL` is before every entry."""

    ms: int
    n: int = 0

    def __str__(self) -> str:
        return f"{self.ms}-{self.n}"

    @property
    def after(self) -> "Id":
        """The least id that is greater."""
        return Id(self.ms, self.n + 1) if self.n < LAST_N else Id(self.ms + 1)

    @property
    def before(self) -> "Id":
        """The greatest id that is less."""
        return Id(self.ms, self.n - 1) if self.n else Id(max(self.ms - 1, 0), LAST_N if self.ms else 0)


BEFORE_ALL = Id(0, 0)


def parsed(text: str | bytes, n: int = 0) -> Id:
    """`ms` or `ms-n`; the n of one that has none is `n`. ValueError if it is neither."""
    ms, _, number = (text.decode() if isinstance(text, bytes) else text).partition("-")
    if not (ms.isdecimal() and (number or "0").isdecimal()):
        raise ValueError(f"not an id of a stream entry: {text!r}")
    return Id(int(ms), int(number) if number else n)
