"""The objects of a worker, and how they are connected."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

import redis.asyncio

from access.live import follow_stored
from access.proof import Proof
from metrics import catalogue as metrics
from metrics.counts import Observed
from metrics.samples import Sample
from metrics.store_commands import StoreCommands
from registry import settings
from registry.clusters import cluster_info
from registry.drivers import AsyncDriver
from registry.expiry.holds import HoldRule
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.options.catalogue import Options, overlay
from registry.ownership import ReportedRefusals
from registry.plans import Origin
from registry.queue_data.rewrite import Rewrites
from registry.registration.cache import RegistrationCache
from registry.registration.request import RegisterContext
from registry.registration.straight import Change, Split, change_of
from registry.store import connect
from rocketmq_remoting.command import Command
from worker.access_records import AccessRecords
from worker.answering import Answering
from worker.background import end, forever
from worker.cache.before_loss import BeforeLoss
from worker.cache.cached_registrations import CachedRegistrations
from worker.cache.invalidation import Invalidation, Listed
from worker.cache.lists import ListCache, Made
from worker.cache.routes import RouteCache
from worker.claimants import claimant_of
from worker.counters import Counters
from worker.guard import ADMITTED, Guard, Verdict
from worker.overload.admission import Admission
from worker.overload.known_hosts import KnownHosts
from worker.peer import Peer
from worker.reply import Request
from worker.roles import Admins
from worker.second_try import SecondTry
from worker.transport.frame_memory import FrameMemory
from worker.watch.announcer import Announcer
from worker.watch.closed_connections import ClosedConnections
from worker.watch.contested_members import ContestedMembers
from worker.watch.follower import Follower
from worker.watch.readiness import LATE_S, what_is_late
from worker.watch.stale_serving import StaleServing
from worker.watch.standstill import Standstill
from worker.watch.ticker import Ticker

START_WAIT_S: Final = 1.0


class Assembly:
    """What a service is made of, over one store and on one event loop.

    `worker_id` must differ between any two processes that ever served the namespace. `options` are the live ones:
    what the process was started with, under the settings that all workers share. Their `advertise_address` has a
    port, or is empty where none is announced."""

    def __init__(self, options: Options, worker_id: str) -> None:
        self.options = options
        self._given = options
        self._limits = Limits.of(options)
        self._worker_id = worker_id
        self.keys = Keys(options.namespace)
        self.clock = asyncio.get_running_loop().time
        self.counters = Counters(lambda: self.ticker.store_ms())
        self.admins = Admins()
        self.guard = Guard(options, self.counters)
        self.numbers = itertools.count(1)
        self.frame_memory = FrameMemory(self.clock)
        self.known_hosts = KnownHosts()
        self.admission = Admission(self.known_hosts, options)
        self.commands = StoreCommands()
        self.driver = self.make_driver(connect.connect_async(options.redis_url, options.namespace))
        self.answering = self.make_answering()
        self.registration_cache = RegistrationCache(self.clock)
        self.rewrites = Rewrites()
        self.registrations = CachedRegistrations(
            self.clock, self.counters, self.guard.proves, self._change_of
        )
        self.routes = RouteCache(options.route_cache_bytes, self.counters, self.registrations.find)
        here = self.driver, self.keys, worker_id
        self._records = AccessRecords(self.guard, *here, self.routes.requests)
        self.lists = ListCache(options.route_cache_bytes, self.counters)
        self.before_loss = BeforeLoss(options.route_cache_bytes)
        self.closed = ClosedConnections(*here, lambda: self.options, self.counters)
        contested = ContestedMembers(*here, lambda: self.options, self.counters, self.clock)
        self.second_try = SecondTry(self.driver, contested)
        self._refusals = ReportedRefusals(self.clock)
        self.ticker = Ticker(
            self.driver,
            self.keys,
            worker_id,
            self._lapsed,
            HoldRule.of(options),
            lambda: self.follower.connected,
            lambda seconds: self.counters.hide_delay.observe(seconds),
            lambda: self.follower.behind_s(),
        )
        rules = Invalidation(
            self.routes,
            self.lists,
            self.before_loss,
            self.registration_cache.renewals,
            self.counters,
            self._read_settings,
            self._read_access,
            self._read_brokers,
            self.closed.expired,
            self.ticker.leased,
        )
        follow = partial(connect.connect_follower, options.redis_url, options.namespace)
        self.follower = Follower(follow, self.keys, rules)
        self.announcer = Announcer(*here, options.advertise_address, lambda: self.follower.connected)
        self._late = partial(what_is_late, self.follower, self.ticker)
        self.stale = StaleServing(self.follower, lambda: self.options.stale_serve_max_seconds)
        self.standstill = Standstill(self.follower, self.ticker, self.registration_cache.renewals.invalidate)
        self._background: list[asyncio.Task[None]] = []

    def make_driver(self, store: redis.asyncio.Redis) -> AsyncDriver:
        """Return what runs plans."""
        return AsyncDriver(store, self.commands)

    def make_answering(self) -> Answering:
        """Return what sends replies."""
        return Answering(self.counters, self.numbers, self.options)

    async def start(self) -> None:
        """Begin to follow and to tick; return after the first tick, or soon if the store is away."""
        self._begin("the guard", self.guard.run)
        self._begin("the records of access", self._records.run)
        self._begin("the follower", self.follower.run)
        self._begin("the standstill watch", self.standstill.run)
        self._begin("the watch of stale answers", self.stale.run)
        await self.ticker.step()
        self._begin("the ticker", self.ticker.run)
        self._background.append(asyncio.get_running_loop().create_task(self.driver.open()))
        await self.follower.following(START_WAIT_S)
        self._begin("the announcer", self.announcer.run)

    async def stop(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Cancel these tasks and the background ones, and close the connections to the store."""
        self.standstill.stop()
        await end((*self._background, *tasks))
        await self.closed.stop()
        await self.second_try.stop()
        await self.ticker.stop()
        await self._records.stop()
        await self.driver.close()

    def _begin(self, what: str, run: Callable[[], Awaitable[None]]) -> None:
        self._background.append(asyncio.get_running_loop().create_task(forever(what, run)))

    def request(self, command: Command, peer: Peer, verdict: Verdict = ADMITTED) -> Request:
        """Return a command with what its handler needs."""
        return Request(
            command=command,
            peer=peer,
            origin=self.origin(peer, verdict.proof or peer.standing.proof),
            keys=self.keys,
            options=self.options,
            limits=self._limits,
            claimant=claimant_of(command, peer, verdict, self.options, self._refusals),
            owner=self.closed.owner(peer),
            registers=partial(self.closed.registers, peer),
            refused=partial(self.closed.refused, peer),
            registration_cache=self.registration_cache,
            rewrites=self.rewrites,
            late=self._late,
            started_ms=self.ticker.started_ms,
            unreadable=self.counters.decode_errors.add,
            topics=verdict.topics,
        )

    def origin(self, peer: Peer, proof: Proof | None) -> Origin:
        """Return the origin of a request of a peer who has proved this."""
        op = f"{self._worker_id}-{next(self.numbers):x}"
        return Origin(op, f"wire:{peer.address}") if proof is None else Origin(op, proof.actor, peer.address)

    @property
    def registered_peers(self) -> int:
        """Return over how many connections a broker has registered."""
        return self.closed.registered_peers

    @property
    def admin_peers(self) -> int:
        """Return over how many others lists or changes were asked for."""
        return self.admins.without_brokers()

    def state(self) -> Iterator[Sample | Observed]:
        """Yield what this worker has just now, as values of metrics."""
        yield from self.commands.read()
        yield Sample(metrics.INFLIGHT, (), self.admission.waiting)
        yield Sample(metrics.ROUTE_CACHE_BYTES, (), self.routes.size)
        yield Sample(metrics.ROUTE_CACHE_ENTRIES, (), len(self.routes))
        is_near = self.follower.behind_s() <= LATE_S
        yield Sample(metrics.FOLLOWER_CONNECTED, (), self.follower.connected and is_near)
        yield Sample(metrics.REDIS_CLOCK_OFFSET, (), self.ticker.clock_offset_s)

    def drop_all(self) -> None:
        """Drop all replies to lookups and list requests: anything may have changed."""
        self.routes.drop_all()
        self.lists.drop_all()

    def follows_late(self) -> bool:
        """Return whether the store is there, and yet its changes have not been followed for long, or have waited for
        long to be applied: then nothing is answered from caches."""
        late_s = max(self.follower.disconnected_for_s(), self.follower.behind_s())
        return min(late_s, self.ticker.good_for_s()) > LATE_S

    def when_followed(self, event_id: str, done: Callable[[bool], object]) -> None:
        """Call `done` with True when the caches have followed this entry, or were dropped because that takes too long;
        with False where the store went away meanwhile, so that what it wrote may be lost."""
        if self.follower.passed(event_id):
            done(True)
        elif self.follows_late():  # what this worker answers is of the store
            self._followed(done, False)
        else:
            self.follower.when_reached(event_id, partial(self._followed, done))

    def _followed(self, done: Callable[[bool], object], in_time: bool) -> None:
        if not in_time and (self.follower.connected or self.follows_late()):
            self.drop_all()  # so that this connection sees what it wrote all the same
            in_time = True
        done(in_time)

    def _change_of(self, kind: RegisterContext, body: bytes, split: Split, crc: int) -> Change | None:
        return change_of(kind, self.registration_cache.tables, body, split, crc)

    def _lapsed(self, names: set[str]) -> None:
        """Every tick: drop replies with brokers whose leases ended or were renewed after all."""
        self.routes.drop_brokers(names)
        if names:
            self.lists.changed(Made.BROKERS)
        if self.follows_late():
            self.drop_all()

    async def _read_settings(self) -> None:
        self.options = overlay(self._given, await self.driver.run(settings.read(self.keys)))

    async def _read_access(self, lost_writes: bool) -> None:
        take = partial(self.guard.take_stored, lost_writes=lost_writes)
        origin = Origin(f"{self._worker_id}-{next(self.numbers):x}", f"worker:{self._worker_id}")
        await self.driver.run(follow_stored(self.keys, take, origin))

    async def _read_brokers(self) -> Listed:
        """Return which brokers the store has."""
        info = await self.driver.run(cluster_info(self.keys))
        return {name: frozenset(data.broker_addrs) for name, data in info.broker_addr_table.items()}
