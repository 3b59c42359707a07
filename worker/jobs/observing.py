"""Shows each entry of the stream to observers, in one of all schedulers, so that each is counted and logged once."""

from collections.abc import Callable, Sequence
from typing import Final

from registry.events.entry import Event
from worker.watch.follower import Listener, ResetCause

__all__ = ["ObservingListener"]

Observer = Callable[[Event], None]


class ObservingListener:
    """A follower's listener that hands on to another one; `observes_here` is asked whether this process observes."""

    def __init__(self, listener: Listener, observes_here: Callable[[], bool], *observers: Observer) -> None:
        self._listener = listener
        self._observes_here = observes_here
        self._observers: Final = observers

    async def apply(self, group: Sequence[Event]) -> None:
        """Apply all entries of one script, then show them: those that raise come again."""
        await self._listener.apply(group)
        if self._observes_here():
            for event in group:
                for observe in self._observers:
                    observe(event)

    def emptied(self) -> None:
        """See `Listener`."""
        self._listener.emptied()

    async def reset(self, cause: ResetCause) -> None:
        """See `Listener`; what was missed is not shown."""
        await self._listener.reset(cause)
