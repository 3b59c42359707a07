"""Two hosts that claim the same broker at once, in any order in which the store may meet their requests: one has it."""

from itertools import cycle, islice, permutations

import pytest
import redis as redis_py

from registry.errors import NotOwner
from registry.ownership import Claimant
from registry.plans import Plan
from registry.queue_data.slices import TOPICS_MAX
from registry.registration.register import Registered, register
from tests.registry.brokers import origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

SMALL = ("T1", "T2")
LARGE = tuple(f"T{number}" for number in range(TOPICS_MAX + 1))
STEPS = 4
"""Of each that are put in all orders; what follows is done alternately."""


def claim(ns: Namespace, number: int, topics: tuple[str, ...]) -> Plan[Registered]:
    host = f"127.{number}.0.1"
    asked = registration(topics=topics, at=f"{host}:10911")
    claimant = Claimant(f"host:{host}", guard=True)
    return register(ns.keys, asked, origin(), owner=f"w1/{number}", host=host, claimant=claimant)


@pytest.mark.parametrize("topics", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "order", sorted(set(permutations([1, 2] * STEPS))), ids=lambda order: "".join(map(str, order))
)
def test_one_of_two_claimants_has_the_broker(
    redis: redis_py.Redis, order: tuple[int, ...], topics: tuple[str, ...]
) -> None:
    ns = Namespace(redis)
    ns.tick("w1")
    claims = {number: Stepped(claim(ns, number, topics), redis) for number in (1, 2)}
    for number in (*order, *islice(cycle((1, 2)), 200)):
        if claims[number].request is not None:
            claims[number].step()
    won = []
    for number, plan in claims.items():
        try:
            plan.finish()
            won.append(number)
        except NotOwner:
            pass
    assert len(won) == 1
    assert ns.addrs() == {0: f"127.{won[0]}.0.1:10911"}
    ns.clean_up()
    ns.check()
