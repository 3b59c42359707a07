"""Cooperative work: generators that do long work in short steps, so that an event loop can run other tasks between."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Cooperative: TypeAlias = Generator[None, None, T]
"""Yields after each step, well below a millisecond of work, and returns the result."""


def run_to_completion(work: Cooperative[T]) -> T:
    """Return the result of `work`, run without a pause. Raises what `work` raises."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
