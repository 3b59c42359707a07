"""Random requests of strangers against living brokers, with ownershipGuard: what is their owners' stays as it is."""

import random
from contextlib import suppress
from typing import Final

import pytest
from msgspec.structs import replace

from registry.errors import NotOwner, RegistrationRefused
from registry.growth.limits import DEFAULT_LIMITS
from registry.ownership import Claimant, registrant_at, registrant_of
from registry.registration.heartbeat import renew_lease
from registry.removal import release_owner, remove_disconnected
from registry.topics import register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

ACTS: Final = 1_500
TIMEOUT_MS: Final = 120_000
AT: Final = {"p": "10.0.0.1:10911", "own": "[fd00::2]:10911", "nat": "10.99.0.1:10911"}
"""A principal's broker, one at its host's own address, of which no connection is noted, and one behind another."""
OWNERS: Final = {
    "p": Claimant(registrant_of("p"), guard=True),
    "own": Claimant(registrant_at("fd00::2"), guard=True),
    "nat": Claimant(registrant_at("10.0.0.3"), guard=True),
}
STRANGERS: Final = (registrant_at("10.66.0.1"), registrant_at("10.66.0.2"), registrant_of("q"))
NAMES: Final = (*AT, "q", "other")
ADDRESSES: Final = (*AT.values(), "10.66.0.1:10911", "10.66.0.2:10911")


class Strangers:
    """They keep their connections for a while."""

    def __init__(self, ns: Namespace, seed: int) -> None:
        self._ns = ns
        self._dice = random.Random(seed)
        self._connections: list[tuple[str, str, str]] = []  # cluster, address and owner

    def act(self) -> None:
        """Send one request, or close a connection; the principal `q` has limits that name its own broker alone."""
        choose = self._dice.choice
        name = choose(NAMES)
        by = Claimant(choose(STRANGERS), guard=True, claims=name == "q")
        asked = choose((self._register, self._register, self._unregister, self._heartbeat, self._topic))
        if self._dice.random() < 0.01:
            self._close_all()
            return
        with suppress(NotOwner, RegistrationRefused):
            asked(name, AT.get(name, "") if choose((True, False)) else choose(ADDRESSES), by)

    def _register(self, name: str, at: str, by: Claimant) -> None:
        choose, cluster = self._dice.choice, self._dice.choice(("c1", "c1", "c2"))
        owner = f"w1/{self._dice.randrange(1_000, 9_999)}"
        self._ns.register(
            *(name, choose((0, 0, 1, -1, 7))),
            topics=choose((("T1", "T2"), {"T1": "1,1,0,0"})),
            cluster=cluster,
            at=at,
            version=self._dice.randrange(50),
            zone=choose((None, "z")),
            acting=choose((None, True, False)),
            timeout_ms=choose((1, TIMEOUT_MS, 10 * TIMEOUT_MS)),
            owner=owner,
            host=by.registrant.removeprefix("host:"),
            by=by,
        )
        self._connections.append((cluster, at, owner))

    def _unregister(self, name: str, at: str, by: Claimant) -> None:
        self._ns.unregister(name, cluster=self._dice.choice(("c1", "c2")), at=at, by=by)

    def _heartbeat(self, _: str, at: str, by: Claimant) -> None:
        self._ns.run(renew_lease(self._ns.keys, "c1", at, origin(), claimant=by))

    def _topic(self, name: str, _: str, by: Claimant) -> None:
        """Of hosts' brokers any caller may do this."""
        queues = [QueueData(name if name not in ("own", "nat") else "p", 1, 1, 0, 0)]
        self._ns.run(register_topic(self._ns.keys, "T1", queues, origin(), claimant=by))

    def _close_all(self) -> None:
        """As workers do, which may probe none of these addresses."""
        for closed in self._connections:
            gone = self._ns.run(release_owner(self._ns.keys, *closed))
            if gone is not None:
                self._ns.run(remove_disconnected(self._ns.keys, gone, "closed", origin()))
        self._connections.clear()


def state(ns: Namespace) -> dict[str, object]:
    """What of the brokers is their owners'."""
    seen: dict[str, object] = {}
    for name, at in AT.items():
        registrant, timeout = ns.store.hmget(ns.keys.member(f"c1:{at}"), "registrant", "timeout")
        seen[name] = ns.addrs(name).get(0), registrant, int(timeout or 0) >= TIMEOUT_MS
    of_group = ns.store.hmget(ns.keys.broker("p"), "epoch", "acting", "zone", "in:c2")
    return seen | {"topics of p": ns.topics("p"), "group of p": of_group}


@pytest.mark.parametrize("seed", range(3))
def test_strangers_change_nothing_of_living_brokers(ns: Namespace, seed: int) -> None:
    ns.limits = replace(DEFAULT_LIMITS, max_owners_of_member=4)
    for name, at in AT.items():
        host = OWNERS[name].registrant.removeprefix("host:")
        ns.register(name, at=at, by=OWNERS[name], owner=None if name == "own" else f"w1/0{name}", host=host)
    before, strangers = state(ns), Strangers(ns, seed)
    for number in range(ACTS):
        if number % 100 == 0:
            ns.tick("w1")
        strangers.act()
        assert state(ns) == before
