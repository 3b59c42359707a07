"""A row of the fault table: where it takes place, what is done there, and what is promised meanwhile."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from faults.access import Enforcement
from faults.fleet import Fleet
from faults.looks import Look
from faults.places import Place
from testbed.rocketmq.stage import Stage

P = TypeVar("P", bound=Place)


class Topics(Enum):
    """Topics whose lookups may fail."""

    NONE = "none"
    CHANGING = "changing"
    """Topics of brokers that come and go: their routes may be in no worker's cache."""
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The failures that are allowed during the fault and just after. No route may be wrong, and no message lost.

    `lookups_fail` says of which topics lookups may fail, `unanswered_s` how long a client may be without an answer
    then, `registrations_fail` whether registrations may fail, `behind_s` by how much routes may be behind what brokers
    did (a second is promised of killed ones: docs/architecture.md), and `recovers_s` when nothing fails any more,
    counted from the fault's end."""

    lookups_fail: Topics = Topics.NONE
    unanswered_s: float = 3.0
    registrations_fail: bool = False
    behind_s: float = 1.0
    recovers_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[P]):
    """`fault` is a context: entered it is there, left it is over. `lasts_s` is the time between.

    `processes` is in how many the brokers live. `look` is what the runbook's first look has to show.
    With `enforcement` all peers need a proof."""

    name: str
    title: str
    place: Callable[[Stage], P]
    fault: Callable[[P, Fleet], AbstractContextManager[None]]
    lasts_s: float = 0.0
    promise: Promise = Promise()
    processes: int = 1
    look: Look[P] | None = None
    enforcement: Enforcement | None = None
