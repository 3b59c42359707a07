"""A namespace on a store, driven as a worker drives it."""

from typing import Any, TypeVar

from registry.beats import Beat, beat
from registry.drivers import run
from registry.fold import Event
from registry.keys import Keys, member_key
from registry.liveness import Tick, tick
from registry.plans import Plan
from registry.registration import Registered, register
from registry.removal import Removal, expire, settle_owed, unregister
from registry.routes import RouteView, read_route, route_of
from registry.topics import topics_of_broker
from remoting.route import TopicRouteData
from tests.registry.brokers import act, address, registration
from tests.registry.check_tables import check_tables
from tests.registry.stored import Store, assert_folds, entries

T = TypeVar("T")


class Namespace:
    """The usual requests in few words; `check` proves the tables and the stream against each other."""

    def __init__(self, store: Store, keys: Keys | None = None) -> None:
        self.store = store
        self.keys = keys or Keys()
        self.rewritten = False  # by a test's hand, so that the stream cannot tell it
        self._seen = "-"

    def run(self, plan: Plan[T]) -> T:
        return run(plan, self.store)

    def register(
        self, *args: Any, owner: str | None = None, delete_missing: bool = False, **kwargs: Any
    ) -> Registered:
        """Register what `tests.registry.brokers.registration` makes of the rest."""
        asked = registration(*args, **kwargs)
        return self.run(register(self.keys, asked, act(), owner=owner, delete_missing=delete_missing))

    def unregister(
        self, name: str = "b1", number: int = 0, *, cluster: str = "c1", at: str | None = None
    ) -> Removal:
        where = at or address(name, number)
        return self.run(unregister(self.keys, cluster, where, name, str(number), act()))

    def beat(self, name: str = "b1", number: int = 0, *, cluster: str = "c1") -> Beat:
        return self.run(beat(self.keys, cluster, address(name, number), act()))

    def tick(self, worker: str = "w1") -> Tick:
        return self.run(tick(self.keys, worker, act()))

    def expire(self) -> int:
        return self.run(expire(self.keys, act()))

    def settle(self) -> None:
        self.run(settle_owed(self.keys, act()))

    def route(self, topic: str, view: RouteView | None = None) -> TopicRouteData:
        """Raises TopicNotFound."""
        return route_of(self.run(read_route(self.keys, topic)), view or RouteView())

    def topics(self, name: str = "b1") -> dict[str, str]:
        """What is stored of a broker: `readQ,writeQ,perm,sysFlag` by topic."""
        found = self.run(topics_of_broker(self.keys, name))
        return {
            topic: f"{data.read_queue_nums},{data.write_queue_nums},{data.perm},{data.topic_sys_flag}"
            for topic, data in found.items()
        }

    def addrs(self, name: str = "b1") -> dict[int, str]:
        """The places of a broker name, lapsed ones too."""
        fields = self.store.hgetall(self.keys.broker(name))
        return {int(f[5:]): key.partition(":")[2] for f, key in sorted(fields.items()) if f[:5] == "addr:"}

    def now_ms(self) -> int:
        seconds, micros = self.store.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def next_ms(self) -> None:
        """Return when the store's clock has moved on."""
        before = self.now_ms()
        while self.now_ms() == before:
            pass

    def lapse(self, name: str = "b1", number: int = 0, *, cluster: str = "c1", ago_ms: int = 1) -> None:
        """The member's lease ended so long ago; nobody has noticed yet."""
        member = member_key(cluster, address(name, number))
        end = self.now_ms() - ago_ms
        self.store.zadd(self.keys.leases, {member: end}, xx=True)
        self.store.set(self.keys.alive(member), end, pxat=end, xx=True)

    def new_entries(self) -> list[Event]:
        """What was appended since the last call."""
        found = entries(self.store, self.keys, self._seen)
        if found:
            self._seen = found[-1].id
        return found

    def entries(self) -> list[Event]:
        """The whole stream."""
        return entries(self.store, self.keys)

    def told(self) -> list[str]:
        """The same in short: `kind cause` of each."""
        return [f"{event.kind} {event.cause}" for event in self.new_entries()]

    def check(self, *, settled: bool = True) -> None:
        check_tables(self.store, self.keys, settled=settled)
        if not self.rewritten:
            assert_folds(self.store, self.keys)
