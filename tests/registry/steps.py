"""Plans run by hand: stopped at any request, interleaved with others, or left unfinished as by a dead process."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import redis
from redis.exceptions import RedisError

from registry.drivers import run
from registry.plans import Batch, Pause, Plan, Request, ScriptCall

T = TypeVar("T")


TIME_SLICE = Pause(0)  # of long work, which takes as many of them as the machine is slow


class Stepped(Generic[T]):
    """A plan between two requests: `request` is what it asks next; None once it is done, with `result` or `error`.

    Those of a batch are done one after the other: a driver sends them at once, but the store may serve others between
    two of them."""

    def __init__(self, plan: Plan[T], store: redis.Redis) -> None:
        self._plan = plan
        self._store = store
        self.result: T | None = None
        self.error: Exception | None = None
        self.request: Request | None = None
        self._batch: tuple[Request, ...] = ()
        self._replies: list[object] = []
        self._go_on(lambda: next(plan))

    def step(self) -> None:
        """Do what it asks, and hand it the reply; pauses take no time."""
        request = self.request
        assert request is not None
        try:
            reply = None if isinstance(request, Pause) else run(_one(request), self._store)
        except RedisError as error:
            self._batch, self._replies = (), []
            refusal = error  # the name of the clause ends with it
            self._go_on(lambda: self._plan.throw(refusal))
            return
        if not self._batch:
            self._go_on(lambda: self._plan.send(reply))
            return
        self._replies.append(reply)
        done = len(self._replies)
        if done < len(self._batch):
            self.request = self._batch[done]
        else:
            replies, self._batch, self._replies = self._replies, (), []
            self._go_on(lambda: self._plan.send(replies))

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
            while self.request == TIME_SLICE:
                self.request = self._plan.send(None)
            if isinstance(self.request, Batch) and self.request.requests:
                self._batch = self.request.requests
                self.request = self._batch[0]
        except StopIteration as done:
            self.request, self.result = None, done.value
        except Exception as error:  # raised by `finish`
            self.request, self.error = None, error


def _one(request: Request) -> Plan[Any]:
    return (yield request)
