"""Work of any length as steps of bounded length, so that a caller on an event loop can let others have their turn."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Yields between its steps, of which each takes well below a millisecond, and returns the result."""


def finished(steps: Steps[T]) -> T:
    """The result, all steps done at once."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
