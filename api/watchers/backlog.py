"""The newest messages, for watchers that come back and those that read more slowly than others."""

from collections import deque
from typing import Final

from api.watchers.messages import Message
from registry.events.entry import EventId

__all__ = ["Backlog"]

MOST_BYTES: Final = 16 << 20
MOST_MESSAGES: Final = 10_000


class Backlog:
    """Consecutive messages behind a position, by their numbers: `first` to `end`, which is not there yet."""

    def __init__(self, position: EventId, most_bytes: int = MOST_BYTES) -> None:
        self.first = 0
        self.position = position
        """Behind the last message."""
        self._begin = position
        self._messages: deque[Message] = deque()
        self._numbers: dict[EventId, int] = {position: 0}
        self._bytes = 0
        self._most_bytes = most_bytes

    @property
    def end(self) -> int:
        """The number of the next message."""
        return self.first + len(self._messages)

    def message(self, number: int) -> Message:
        """Return the message of a number from `first` on, before `end`."""
        return self._messages[number - self.first]

    def number_behind(self, position: EventId) -> int | None:
        """Return the number of the first message behind a position; None where that is not known here.

        A reset has the position before it, if its reader may go on there: such a reader gets it, perhaps again."""
        return self._numbers.get(position)

    def append(self, message: Message) -> None:
        """Add what comes next, and drop what is oldest beyond the bounds."""
        self._messages.append(message)
        if message.cause is None or message.position != self.position:
            self._numbers[message.position] = self.end
        self.position = message.position
        self._bytes += message.bytes
        while self._is_full and len(self._messages) > 1:
            self._drop_oldest()

    def prepend(self, message: Message, before: EventId) -> bool:
        """Add what comes before all, behind the position `before`, if there is room; return whether there was."""
        if self._is_full:
            return False
        self._messages.appendleft(message)
        self.first -= 1
        self._begin = before
        self._numbers[before] = self.first
        self._bytes += message.bytes
        return True

    @property
    def _is_full(self) -> bool:
        return self._bytes > self._most_bytes or len(self._messages) > MOST_MESSAGES

    def _drop_oldest(self) -> None:
        message = self._messages.popleft()
        if self._numbers.get(self._begin) == self.first:
            del self._numbers[self._begin]
        self.first += 1
        self._bytes -= message.bytes
        self._begin = message.position
