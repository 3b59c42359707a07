"""Two namespaces that get the same requests: registrations go the straight way in one, where they can, and the long way
in the other. After each step both must have the same tables, events and answers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from registry.drivers import AsyncDriver, run
from registry.errors import RegistryError
from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import Keys
from registry.plans import Origin, Plan
from registry.registration.cache import RegistrationCache
from registry.registration.register import Registered, register
from registry.removal import expire
from registry.store.connect import connect_async
from rocketmq_remoting.errors import BodyError
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store
from tests.registry.two_ways.asked import Asked, Trace, traced
from tests.registry.two_ways.contents import AGED_MS, Contents, Entries, contents
from tests.registry.two_ways.exits import Exits

FOREVER_MS: Final = 9e15
HOST: Final = "127.0.0.1"
WORKERS: Final = 2
NO_SIGNATURE: Final = "none"
Answer = str


class Side:
    """One of the two namespaces."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self.ns = Namespace(store, keys)
        self.entries = Entries(store, keys)
        store.zadd(keys.workers, {f"w{number + 1}": FOREVER_MS for number in range(WORKERS)})

    def run(self, plan: Plan[Any]) -> Any:
        """Return what a plan returns, or the error that it raises."""
        try:
            return run(plan, self.ns.store)
        except (RegistryError, BodyError) as error:
            return error

    def answer(self, answered: Any) -> Answer:
        """Return an answer without what differs from one namespace to the other."""
        if not isinstance(answered, Registered):
            return f"{type(answered).__name__}: {answered}"
        one = answered
        number = self.entries.number(one.event_id)
        return f"{one.outcome} {one.master_address} {one.ha_address} {one.order_table} {number}"


class TwoWays:
    """`straight` is the side of workers that cache tables, `long` the other one."""

    def __init__(self, url: str, store: Store, limits: Limits, exclusive: bool) -> None:
        self.store = store
        self.straight, self.long = (Side(store, Keys(way)) for way in ("straight", "long"))
        self.sides = self.straight, self.long
        days = count(0, 86_400)  # so much later is each registration, and no cached renewal answers it
        self._caches = [RegistrationCache(lambda: float(next(days))) for _ in range(WORKERS)]
        self._exits = Exits(store, self.straight.ns.keys, self._caches)
        self._drivers = [AsyncDriver(connect_async(url), self._exits.observe) for _ in range(WORKERS)]
        self._limits = limits
        self._exclusive = exclusive
        self.conflicts = 0  # registrations that were refused since another living member has what they take
        self._scripts = count(1)
        self._lapsed = set[str]()

    @classmethod
    @asynccontextmanager
    async def of(
        cls, url: str, store: Store, limits: Limits = DEFAULT_LIMITS, *, exclusive: bool = False
    ) -> AsyncIterator["TwoWays"]:
        """Have them on an empty store; `exclusive` is identityConflicts=refuse."""
        both = cls(url, store, limits, exclusive)
        try:
            yield both
        finally:
            for driver in both._drivers:
                await driver.close()

    @property
    def exits(self) -> Counter[str]:
        """How often each exit was taken (`tests.registry.two_ways.exits`)."""
        return self._exits.taken

    async def register(self, *asked: Asked) -> list[Answer]:
        """Let registrations begin at one moment. On the other side they come one after the other, in the order in which
        their last scripts ran here.

        Lapses of other members are recorded before: as the short cut, the straight way leaves them for later."""
        if self._lapsed - ({asked[0].member} if len(asked) == 1 else set()):
            self.expire()
        self._lapsed.clear()
        before = [self._exits.before(one) for one in asked]
        origins, traces = [origin() for _ in asked], [Trace() for _ in asked]
        done = await asyncio.gather(
            *(
                self._drivers[one.worker].run(
                    traced(self._plan(one, by, straight=True), trace, self._next_script)
                )
                for one, by, trace in zip(asked, origins, traces, strict=True)
            ),
            return_exceptions=True,
        )
        in_order = sorted(range(len(asked)), key=lambda i: traces[i].ended)
        by_long = {i: self._long_way(asked[i], origins[i]) for i in in_order}
        entries = self._compared()
        answers = [self.straight.answer(one) for one in done]
        self.conflicts += sum(answer.startswith("IdentityConflict") for answer in answers)
        expected = [self.long.answer(by_long[i]) for i in range(len(asked))]
        for answer, other in zip(answers, expected, strict=True):
            refused = answer.startswith("BodyError") and other.startswith("NotOwner")  # on both grounds
            assert answer == other or refused, f"{answer}, but {other} the long way"
        for one, at_first, trace, answer, by in zip(asked, before, traces, answers, origins, strict=True):
            own = [entry for entry in entries if entry["op"] == by.op]
            if sum(one.name == other.name or one.member == other.member for other in asked) > 1:
                self._exits.after_another(one, at_first, trace, own)
            else:
                self._exits.after(one, at_first, trace, answer, own, self.straight.ns.now_ms())
        return answers

    def expire(self) -> None:
        """Record the lapses that are due."""
        self.each(lambda keys, by: expire(keys, by))
        self._lapsed.clear()

    def each(self, plan: Callable[[Keys, Origin], Plan[Any]]) -> None:
        """Do the same in both, and compare them."""
        by = origin()
        results = [side.run(plan(side.ns.keys, by)) for side in self.sides]
        errors = [repr(one) if isinstance(one, Exception) else None for one in results]
        assert errors[0] == errors[1], f"{errors[0]}, but {errors[1]} the long way"
        self._compared()

    def by_hand(self, change: Callable[[Store, Keys], object]) -> None:
        """Change both as no operation does."""
        for side in self.sides:
            change(self.store, side.ns.keys)

    def has(self, member: str, name: str, number: int) -> bool:
        """Return whether it is registered with this broker name and id, and living."""
        place = self.store.hget(self.straight.ns.keys.broker(name), f"addr:{number}")
        return place == member and member not in self._lapsed

    def lapse(self, member: str) -> None:
        """The member's lease is over, which is not recorded yet."""
        end = self.straight.ns.now_ms() - 1000

        def change(store: Store, keys: Keys) -> None:
            store.zadd(keys.leases, {member: end}, xx=True)
            store.delete(keys.alive(member))

        self.by_hand(change)
        self._lapsed.add(member)

    def grow_old(self) -> None:
        """Let all leases be near their ends, so that it shows which are renewed."""
        now = self.straight.ns.now_ms()

        def change(store: Store, keys: Keys) -> None:
            for member, end in store.zrange(keys.leases, 0, -1, withscores=True):
                if end > now:
                    store.zadd(keys.leases, {member: now + AGED_MS})
                    store.set(keys.alive(member), now + AGED_MS, px=AGED_MS)

        self.by_hand(change)

    def check(self) -> None:
        """Tables and stream of both agree in themselves."""
        for side in self.sides:
            side.ns.clean_up()
            side.ns.check()

    def _plan(self, asked: Asked, by: Origin, *, straight: bool) -> Plan[Registered]:
        return register(
            (self.straight if straight else self.long).ns.keys,
            asked.registration,
            by,
            owner=asked.owner,
            host=HOST,
            delete_missing=asked.delete_missing,
            registration_cache=self._caches[asked.worker] if straight else None,
            limits=self._limits,
            claimant=replace(asked.claimant, exclusive=self._exclusive),
        )

    def _long_way(self, asked: Asked, by: Origin) -> Any:
        """While its member has another signature, no registration is taken for an unchanged one."""
        member = self.long.ns.keys.member(asked.member)
        signed = self.store.hget(member, "sig") if self.store.type(member) == "hash" else None
        if signed is not None:
            self.store.hset(member, "sig", NO_SIGNATURE)
        done = self.long.run(self._plan(asked, by, straight=False))
        if signed is not None and self.store.hget(member, "sig") == NO_SIGNATURE:
            self.store.hset(member, "sig", signed)
        return done

    def _next_script(self) -> int:
        return next(self._scripts)

    def _compared(self) -> list[dict[str, str]]:
        """Return the new entries, once all is the same in both."""
        entries, expected = (side.entries.new() for side in self.sides)
        assert entries == expected, f"entries {entries}, but {expected} the long way"
        now = self.straight.ns.now_ms()
        found, by_long = (contents(self.store, side.ns.keys, now) for side in self.sides)
        assert found == by_long, _differences(found, by_long)
        if entries:
            for cache in self._caches:
                cache.renewals.invalidate()  # as a worker that follows the stream
        return entries


def _differences(found: Contents, expected: Contents) -> str:
    return "; ".join(
        f"{key} is {found.get(key)}, but {expected.get(key)} the long way"
        for key in sorted(found.keys() | expected.keys())
        if found.get(key) != expected.get(key)
    )
