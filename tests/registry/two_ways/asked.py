"""A registration that a test asks for, and the requests by which it was carried out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from registry.ownership import UNGUARDED, Claimant
from registry.plans import Plan, Request, ScriptCall, ScriptItem
from registry.registration.register import Registration
from tests.registry.brokers import registration

T = TypeVar("T")
Said = Mapping[str, Any]
OF_REGISTRATIONS: Final = frozenset(
    ("renew_registration", "reregister_topics", "register", "claim_epoch", "write_slice")
)


@dataclass(frozen=True)
class Asked:
    """What a broker says (`tests.registry.brokers.registration`), the connection that it comes over, and the worker
    that gets it; `spaced`: its body is laid out as Java's brokers lay out none."""

    said: Said
    owner: str | None = "w1/1"
    worker: int = 0
    delete_missing: bool = False
    spaced: bool = False
    claimant: Claimant = UNGUARDED

    @cached_property
    def registration(self) -> Registration:
        made = registration(**self.said)
        return replace(made, body=b" " + made.body) if self.spaced else made

    @property
    def name(self) -> str:
        return self.registration.name

    @property
    def member(self) -> str:
        return self.registration.member


@dataclass
class Trace:
    """The scripts that a registration called, with what each replied first; `ended` orders those of several by their
    last script."""

    replies: list[tuple[str, str]] = field(default_factory=list)
    ended: int = 0

    def of(self, script: str) -> list[str]:
        return [reply for name, reply in self.replies if name == script]


def traced(plan: Plan[T], trace: Trace, clock: Callable[[], int]) -> Plan[T]:
    """Return what a plan does, whose scripts are noted."""
    go_on: Callable[[], Request] = partial(next, plan)
    while True:
        try:
            request = go_on()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            reply = yield request
        except Exception as error:
            go_on, first = partial(plan.throw, error), str(error).partition(" ")[0]
        else:
            go_on, first = partial(plan.send, reply), reply[0] if isinstance(reply, list) and reply else ""
        if isinstance(request, ScriptItem | ScriptCall) and request.name in OF_REGISTRATIONS:
            trace.replies.append((request.name, first))
            trace.ended = clock()
