"""A namespace on a store, driven as a worker drives it."""

from typing import Any, TypeVar

from msgspec.structs import replace

from registry.drivers import run
from registry.events.entry import Event
from registry.expiry.worker_lease import Tick, tick
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import Keys, member_key
from registry.ownership import UNGUARDED, Claimant
from registry.plans import Plan
from registry.queue_data.queue_text import current
from registry.registration.heartbeat import Heartbeat, renew_lease
from registry.registration.register import Registered, register
from registry.removal import Removal, expire, run_deferred, unregister
from registry.routes import RouteView, read_route, route_of
from rocketmq_remoting.route import TopicRouteData
from tests.registry.brokers import address, origin, registration
from tests.registry.check_tables import check_tables
from tests.registry.stored import Store, assert_replays, entries

T = TypeVar("T")
MORE_MEMBERS = replace(DEFAULT_LIMITS, max_members_of_broker=200)
"""Where an operator has raised the limit."""


class Namespace:
    """The usual requests in few words; `check` proves the tables and the stream against each other."""

    def __init__(self, store: Store, keys: Keys | None = None) -> None:
        self.store = store
        self.keys = keys or Keys()
        self.limits = DEFAULT_LIMITS
        self.rewritten = False  # by a test's hand, which the stream has not
        self._seen = "-"

    def run(self, plan: Plan[T]) -> T:
        return run(plan, self.store)

    def register(
        self,
        *args: Any,
        owner: str | None = None,
        host: str | None = None,
        delete_missing: bool = False,
        by: Claimant = UNGUARDED,
        **kwargs: Any,
    ) -> Registered:
        """Register what `tests.registry.brokers.registration` makes of the rest."""
        asked = registration(*args, **kwargs)
        return self.run(
            register(
                self.keys,
                asked,
                origin(),
                owner=owner,
                host=host,
                delete_missing=delete_missing,
                limits=self.limits,
                claimant=by,
            )
        )

    def unregister(
        self,
        name: str = "b1",
        number: int = 0,
        *,
        cluster: str = "c1",
        at: str | None = None,
        by: Claimant = UNGUARDED,
    ) -> Removal:
        where = at or address(name, number)
        return self.run(unregister(self.keys, cluster, where, name, str(number), origin(), claimant=by))

    def heartbeat(
        self, name: str = "b1", number: int = 0, *, cluster: str = "c1", by: Claimant = UNGUARDED
    ) -> Heartbeat:
        return self.run(renew_lease(self.keys, cluster, address(name, number), origin(), claimant=by))

    def tick(self, worker: str = "w1") -> Tick:
        return self.run(tick(self.keys, worker, origin()))

    def expire(self) -> int:
        return self.run(expire(self.keys, origin()))

    def clean_up(self) -> None:
        self.run(run_deferred(self.keys, origin()))

    def route(self, topic: str, view: RouteView | None = None) -> TopicRouteData:
        """Raises TopicNotFound."""
        return route_of(self.run(read_route(self.keys, topic)), view or RouteView())

    def topics(self, name: str = "b1") -> dict[str, str]:
        """What is stored of a broker: `readQ,writeQ,perm,sysFlag` by topic."""
        epoch = self.store.hget(self.keys.broker(name), "epoch")
        return {} if epoch is None else current(self.store.hgetall(self.keys.topics_of(name)), epoch)

    def addrs(self, name: str = "b1") -> dict[int, str]:
        """The places of a broker name, lapsed ones too."""
        fields = self.store.hgetall(self.keys.broker(name))
        return {int(f[5:]): key.partition(":")[2] for f, key in sorted(fields.items()) if f[:5] == "addr:"}

    def now_ms(self) -> int:
        seconds, micros = self.store.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def silent_for(self, ms: int) -> int:
        """Make it so long since a worker last noted that leases can be renewed; return when that was."""
        at_ms = self.now_ms() - ms
        self.store.hset(self.keys.events_meta, mapping={"renew_ms": at_ms, "tick_ms": at_ms})
        return at_ms

    def next_ms(self) -> None:
        """Return when the store's clock has moved on."""
        before = self.now_ms()
        while self.now_ms() == before:
            pass

    def lapse(self, name: str = "b1", number: int = 0, *, cluster: str = "c1", ago_ms: int = 1) -> None:
        """The member's lease ended so long ago; its lapse is not recorded yet."""
        member = member_key(cluster, address(name, number))
        end = self.now_ms() - ago_ms
        self.store.zadd(self.keys.leases, {member: end}, xx=True)
        self.store.set(self.keys.alive(member), end, pxat=end, xx=True)

    def new_entries(self) -> list[Event]:
        """Return the entries since the last call."""
        new = entries(self.store, self.keys, self._seen)
        if new:
            self._seen = str(new[-1].id)
        return new

    def entries(self) -> list[Event]:
        """The whole stream."""
        return entries(self.store, self.keys)

    def new_causes(self) -> list[str]:
        """Return `kind cause` of each new entry."""
        return [f"{event.kind} {event.cause}" for event in self.new_entries()]

    def check(self, *, clean: bool = True) -> None:
        check_tables(self.store, self.keys, clean=clean)
        if not self.rewritten:
            assert_replays(self.store, self.keys)
