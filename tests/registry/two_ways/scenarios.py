"""For each exit of the straight way the steps that lead to it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import Keys, member_key
from registry.ownership import UNGUARDED, Claimant
from registry.removal import unregister
from registry.topics import delete_topic
from tests.registry.brokers import V4, address, mapping_info
from tests.registry.stored import Store
from tests.registry.two_ways.asked import Asked
from tests.registry.two_ways.exits import EXITS
from tests.registry.two_ways.sides import TwoWays

Step = Asked | tuple[Asked, ...] | Callable[[TwoWays], None]
"""A registration, several at once, or what others do."""
TABLE: Final = {"T1": "8,8,6,0", "T2": "8,8,6,0", "T3": "4,4,6,0"}
OTHER: Final = TABLE | {"T1": "1,1,4,0"}
MORE: Final = TABLE | {"T4": "8,8,6,0"}
MANY: Final = TABLE | {f"M{number}": "8,8,6,0" for number in range(501)}
AT: Final = address("b1")
MEMBER: Final = member_key("c1", AT)
FULL: Final = replace(DEFAULT_LIMITS, max_topics=4, max_percent_of_host=100)
FIVE: Final = MORE | {"T5": "8,8,6,0"}
GUARDED: Final = Claimant("principal:p1", guard=True)
TIMEOUT_MS: Final = 40_000_000


def says(
    version: int,
    topics: Mapping[str, str] = TABLE,
    *,
    name: str = "b1",
    owner: str = "w1/1",
    worker: int = 0,
    deletes: bool = False,
    spaced: bool = False,
    by: Claimant = UNGUARDED,
    **said: Any,
) -> Asked:
    """The master of b1 registers, unless something else is said."""
    usual = {"name": name, "topics": topics, "version": version, "timeout_ms": TIMEOUT_MS}
    return Asked(usual | said, owner, worker, deletes, spaced, by)


def lapses(both: TwoWays) -> None:
    both.lapse(MEMBER)


def leaves(both: TwoWays) -> None:
    both.each(lambda keys, by: unregister(keys, "c1", AT, "b1", "0", by))


def loses_a_topic(both: TwoWays) -> None:
    both.each(lambda keys, by: delete_topic(keys, "T3", "", by))


def is_no_hash(both: TwoWays) -> None:
    def change(store: Store, keys: Keys) -> None:
        store.delete(keys.member(MEMBER))
        store.set(keys.member(MEMBER), "no hash")

    both.by_hand(change)


def has_no_timeout(both: TwoWays) -> None:
    both.by_hand(lambda store, keys: store.hset(keys.member(MEMBER), "timeout", "long"))


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "short cut": (says(1), says(1)),
    "done: topics": (says(1), says(2, OTHER)),
    "done: more topics": (says(1), says(2, MORE)),
    "done: static topics": (says(1), says(2, mappings=[mapping_info("T1")])),
    "done: version": (says(1), says(1, cluster="c2"), says(2, cluster="c2")),
    "done: beside others": (says(1), says(1, name="b2"), (says(2), says(2, OTHER, name="b2"))),
    "full: refused": (says(1), says(2, FIVE)),
    "full: written": (says(1), says(1, MORE, name="b2"), says(2, MORE)),
    "error: body": (says(1), says(2, cut=5)),
    "error: wrong type": (says(1), is_no_hash, says(2, OTHER)),
    "differs: dv": (says(1), says(2, worker=1), says(3, OTHER)),
    "differs: sig": (says(1), says(1, worker=1, ha="127.1.0.9:10912"), says(2, OTHER)),
    "differs: epoch": (says(1), leaves, says(1, worker=1), says(2, OTHER)),
    "differs: gen": (says(1), loses_a_topic, says(2, OTHER)),
    "differs: lease": (says(1), lapses, says(2, OTHER)),
    "differs: connection": (says(1), says(2, OTHER, owner="w1/2")),
    "differs: time-out": (says(1), has_no_timeout, says(2, OTHER)),
    "differs: the call before": (says(1), (says(2, OTHER), says(3, MORE))),
    "not asked: not cached": (says(1),),
    "not asked: deletes topics": (says(1, MORE, worker=1), says(2), says(3, deletes=True)),
    "not asked: a slave": (says(1), says(1, number=1), says(2, number=1)),
    "not asked: same version": (says(1), says(1, MORE)),
    "not asked: several slices": (says(1), says(2, MANY), says(3, MORE, mappings=[mapping_info("T1")])),
    "not asked: laid out otherwise": (says(1, spaced=True), says(2, spaced=True)),
    "not asked: another name": (says(1), says(2, name="b2", at=AT)),
    "not asked: another registrant": (
        says(1, by=GUARDED),
        says(2, by=replace(GUARDED, registrant="principal:p2")),
    ),
    "not asked: another number": (says(1, number=1, at=AT), says(2, OTHER, at=AT)),
    "not asked: another ha": (says(1), says(2, ha="127.1.0.9:10912")),
    "not asked: another zone": (says(1), says(2, zone="z1")),
    "not asked: another acting": (says(1), says(2, acting=True)),
    "not asked: another timeout_ms": (says(1), says(2, timeout_ms=TIMEOUT_MS + 1)),
    "not asked: another header": (says(1), says(2, header=V4)),
    "not asked: another filters": (says(1), says(2, filters=("f:1",))),
}
DAMAGED: Final = ("error: wrong type", "differs: time-out")
"""Scenarios with keys that were changed by hand, which the stream has not."""
LIMITS: Final = {exit_: FULL if exit_.startswith("full") else DEFAULT_LIMITS for exit_ in EXITS}


async def played(both: TwoWays, steps: tuple[Step, ...]) -> None:
    for step in steps:
        both.grow_old()
        if isinstance(step, Asked):
            await both.register(step)
        elif isinstance(step, tuple):
            await both.register(*step)
        else:
            step(both)
