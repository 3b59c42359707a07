"""Message queues as lazy sequences: a name server may send any number of queues."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import overload

from msgspec import Struct


class MessageQueue(Struct, frozen=True, order=True, gc=False):
    """A queue of a topic; for a static topic `broker_name` is the name of its scope."""

    topic: str
    broker_name: str
    queue_id: int


class QueueRun(Struct, frozen=True, gc=False):
    """Queues 0 to `count` - 1 of one broker name."""

    broker_name: str
    count: int


class Queues(Sequence[MessageQueue]):
    """The queues of a topic, run after run; equal if queues and order are equal."""

    def __init__(self, topic: str, runs: Iterable[QueueRun] = ()) -> None:
        self.topic = topic
        self.runs = tuple(run for run in runs if run.count > 0)
        self._ends = list(accumulate(run.count for run in self.runs))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> MessageQueue: ...
    @overload
    def __getitem__(self, index: slice) -> list[MessageQueue]: ...
    def __getitem__(self, index: int | slice) -> MessageQueue | list[MessageQueue]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        run = bisect_right(self._ends, at)
        return MessageQueue(self.topic, self.runs[run].broker_name, at - (self._ends[run - 1] if run else 0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queues) and (self.topic, self.runs) == (other.topic, other.runs)

    def __hash__(self) -> int:
        return hash((self.topic, self.runs))

    def __repr__(self) -> str:
        return f"Queues({self.topic!r}, {self.runs!r})"
