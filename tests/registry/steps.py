"""Plans run by hand: stopped at any request, interleaved with others, or left unfinished as by a dead process."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import redis

from registry.drivers import run
from registry.plans import Pause, Plan, Request, ScriptCall

T = TypeVar("T")


TURN = Pause(0)  # of long work, which takes as many of them as the machine is slow


class Stepped(Generic[T]):
    """A plan between two requests: `request` is what it asks next; None once it is done, with `result` or `error`."""

    def __init__(self, plan: Plan[T], store: redis.Redis) -> None:
        self._plan = plan
        self._store = store
        self.result: T | None = None
        self.error: Exception | None = None
        self.request: Request | None = None
        self._go_on(lambda: next(plan))

    def step(self) -> None:
        """Do what it asks, and hand it the reply; pauses take no time."""
        request = self.request
        assert request is not None
        reply = None if isinstance(request, Pause) else run(_one(request), self._store)
        self._go_on(lambda: self._plan.send(reply))

    def until(self, script: str, holds: Callable[[ScriptCall], bool] = lambda _: True) -> bool:
        """Go on until that script is what it asks next; False if it never is."""
        while self.request is not None:
            if isinstance(self.request, ScriptCall) and self.request.name == script and holds(self.request):
                return True
            self.step()
        return False

    def finish(self) -> T:
        """Go on to the end; raises what the plan raises."""
        while self.request is not None:
            self.step()
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]

    def _go_on(self, resume: Callable[[], Request]) -> None:
        try:
            self.request = resume()
            while self.request == TURN:
                self.request = self._plan.send(None)
        except StopIteration as done:
            self.request, self.result = None, done.value
        except Exception as error:  # kept for whoever finishes the plan
            self.request, self.error = None, error


def _one(request: Request) -> Plan[Any]:
    return (yield request)
