"""What a connection has to write and its transport gets later: the replies themselves, not copies, taken in pieces."""

from collections import deque
from collections.abc import Sequence

from worker.transport.reply_memory import LONG, ReplyHolder, ReplyMemory

__all__ = ["Backlog"]


class Backlog:
    """In order; `memory` counts what is long of it, for `holder`."""

    __slots__ = ("_at", "_holder", "_memory", "_parts", "size")

    def __init__(self, memory: ReplyMemory, holder: ReplyHolder) -> None:
        self._memory = memory
        self._holder = holder
        self._parts: deque[bytes] = deque()
        self._at = 0  # how much of the first is taken
        self.size = 0
        """Bytes that are left."""

    def extend(self, parts: Sequence[bytes]) -> None:
        """Add these behind the others."""
        self._parts.extend(parts)
        self.size += sum(map(len, parts))
        long = [part for part in parts if len(part) >= LONG]
        if long:
            self._memory.hold(self._holder, long)

    def take(self, most: int) -> bytes:
        """Take the next bytes, as many as there are up to `most`."""
        taken: list[bytes | memoryview] = []
        room = min(most, self.size)
        self.size -= room
        while room:
            first = self._parts[0]
            part = memoryview(first)[self._at : self._at + room]
            taken.append(part)
            room -= len(part)
            self._at += len(part)
            if self._at == len(first):
                self._at = 0
                self._parts.popleft()
                if len(first) >= LONG:
                    self._memory.release(self._holder, first)
        return b"".join(taken)
