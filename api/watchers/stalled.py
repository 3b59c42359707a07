"""Watchers that have not read what they were sent: what that holds of memory, and which of them have to go."""

from collections.abc import Iterator

from api.watchers.watcher import Block, Watcher

__all__ = ["Stalled"]


class Stalled:
    """Within `most` bytes, and no longer than `most_s` each. Blocks that several watchers hold count once."""

    def __init__(self, most: int, most_s: float) -> None:
        self._most = most
        self._most_s = most_s
        self._held = 0
        self._watchers: dict[Watcher, None] = {}

    def add(self, watcher: Watcher, block: Block, now: float) -> None:
        """Note that a watcher has not read all of a block."""
        if not block.holders:
            self._held += len(block.data)
        block.holders += 1
        watcher.stalled, watcher.stalled_since = block, now
        self._watchers[watcher] = None

    def remove(self, watcher: Watcher) -> None:
        """Note that a watcher has read all, or has gone."""
        block, watcher.stalled = watcher.stalled, None
        if block is not None:
            del self._watchers[watcher]
            block.holders -= 1
            if not block.holders:
                self._held -= len(block.data)

    def overdue(self, now: float) -> Iterator[Watcher]:
        """Yield those that have to go, the longest stalled first; each is expected to be removed before the next."""
        while (first := next(iter(self._watchers), None)) is not None:
            if self._held <= self._most and now - first.stalled_since < self._most_s:
                return
            yield first
