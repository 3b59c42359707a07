"""What a remoting worker does with requests, whatever brought them: the one object the transport talks to."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

import worker.handlers  # noqa: F401  fills the table of worker.dispatch
from registry import settings, store
from registry.drivers import AsyncDriver, raised
from registry.holds import HoldRule
from registry.keys import Keys
from registry.options import Options, overlay
from registry.plans import Act
from registry.registrar import Registrar
from registry.routes import RoutesRead
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command, decode, encode_header
from remoting.remoting_command import ONEWAY_FLAG, RESPONSE_FLAG, SerializeType
from remoting.version import V5_3_1
from worker import dispatch
from worker.admission import Admission
from worker.answer import Answer, Request
from worker.closed_connections import ClosedConnections
from worker.cluster_test import ProductCluster
from worker.counters import Counters
from worker.ending import end
from worker.follower import RECONNECT_S, Follower
from worker.handlers.routes import route_answer
from worker.invalidation import Invalidation
from worker.known_frames import Due, KnownFrames
from worker.known_registrations import FRAME_LONGEST, KnownRegistration, KnownRegistrations
from worker.liveness import Ticker
from worker.long_frames import LongFrames
from worker.peer import Peer
from worker.remembered import Remembered
from worker.route_cache import Fill, RouteCache
from worker.route_reader import RouteReader
from worker.route_view import GET_ROUTE, Key, cache_key

T = TypeVar("T")
BEAT: Final = int(RequestCode.BROKER_HEARTBEAT)
REGISTRATION: Final = int(RequestCode.REGISTER_BROKER)
REPEATED: Final = frozenset((BEAT, int(RequestCode.QUERY_DATA_VERSION), REGISTRATION))
START_WAIT_S = 1.0
UNFOLLOWED_S = 5.0
STOP_WAIT_S = 2.0


class Service:
    """Answers requests over one store; lives on one event loop.

    `worker_id` must differ between any two processes that ever served the namespace. `options` are the live ones:
    what the process was started with, under the settings that all workers share."""

    def __init__(self, options: Options, worker_id: str) -> None:
        self.options = options
        self.worker_id = worker_id
        self.counters = Counters()
        self._given = options
        self._forced_json = options.reply_encoding == "json"
        self._keys = Keys(options.namespace)
        self._driver = AsyncDriver(store.connect_async(options.redis_url, options.namespace))
        self._admission = Admission()
        self.clock = asyncio.get_running_loop().time
        self.long_frames = LongFrames(self.clock)
        self._registrar = Registrar(self.clock)
        self.cache = RouteCache(options.route_cache_bytes, self.counters)
        self._remembered = Remembered()
        self._reader = RouteReader(self._driver, self._keys, self._route_read)
        self._registrations = KnownRegistrations(self.clock)
        self.cache.frames.longer = self._registrations.due
        self._closed = ClosedConnections(
            self._driver, self._keys, worker_id, lambda: self.options, self.counters
        )
        self._ticker = Ticker(self._driver, self._keys, worker_id, self._lapsed, HoldRule.of(options))
        rules = Invalidation(
            self.cache,
            self._remembered,
            self._registrar.renewals,
            self.counters,
            self._read_settings,
            self._closed.expired,
            self._ticker.leased,
        )
        connect = partial(store.connect_follower, options.redis_url, options.namespace)
        self.follower = Follower(connect, self._keys, rules)
        self._product = ProductCluster(options.namesrv_product_addr) if options.cluster_test else None
        self._numbers = itertools.count(1)
        self._requests: set[asyncio.Task[None]] = set()
        self._background: list[asyncio.Task[None]] = []
        self._draining = False
        self._last: asyncio.Future[None] | None = None  # set once nothing is under way, when this stops

    async def start(self) -> None:
        """Begin to follow and to tick; returns after the first tick, or soon if the store is away."""
        loop = asyncio.get_running_loop()
        self._background.append(loop.create_task(self.follower.run()))
        await self._ticker.step()
        self._background.append(loop.create_task(self._ticker.run()))
        self._background.append(loop.create_task(self._driver.open()))
        await self.follower.following(START_WAIT_S)

    def handle(self, command: Command, peer: Peer, frame: bytes | None = None) -> None:
        """Answer one request through `peer.send`, at once if it can be done without the store.

        `frame` is given of one that is not the last that `peer` has."""
        if command.flag & RESPONSE_FLAG:
            return  # this side asks nobody, so nobody waits for it
        if command.opaque is None or (self._forced_json and command.serialize_type):
            command = self._readable(command)
        if self._draining and peer.leaving and command.version > V5_3_1:
            _send(dispatch.GO_AWAY, command, peer)
            return
        key = cache_key(command, self.options)
        kept = None if key is None else self.cache.get(key)
        if (kept is None or kept.code) and self._must_wait(command):
            _send(dispatch.NOT_READY, command, peer)
            return
        if kept is not None:
            if not self.follower.connected:
                self.counters.stale_serves += 1
            elif key is not None and not kept.code:
                self.cache.know(key, peer.frame(), command)
            _send(kept, command, peer)
            return
        refusal = self._admission.refusal(command.code, self.options)
        if refusal is not None:
            self.counters.overloads += 1
            _send(refusal, command, peer)
            return
        self._admission.enter(command.code)
        self.long_frames.hold(len(command.body))
        if key is None:
            if command.code not in REPEATED or len(command.body) > FRAME_LONGEST:
                frame = b""
            elif frame is None:
                frame = peer.frame()
            self._begin(command, peer, partial(self._made, command, peer, frame, self.options))
        else:
            self._fill(key, command, peer)

    def known(self) -> KnownFrames | None:
        """What may be answered now by its bytes."""
        return None if self._draining or not self.follower.connected else self.cache.frames

    def known_of(self, peer: Peer) -> KnownFrames | None:
        """As `known`, with the registrations that came over this connection."""
        self._registrations.asked_by(peer.id, self.options)
        return self.known()

    def ask_again(self, due: Due, peer: Peer) -> None:
        """Answer a beat or a registration that is known by its bytes: from memory, or if the store says what it said
        the last time. The code of a beat stands for all that are admitted as it is."""
        known, again = due.known, due.known.again
        if known.holds(self.clock()):
            self.counters.known_frames += 1
            peer.send(known.pieces(due.opaque))
        elif again is None or self._admission.refusal(BEAT, self.options) is not None:
            asyncio.get_running_loop().call_soon(self.handle, decode(due.frame[4:]), peer, due.frame)
        else:
            self._admission.enter(BEAT)
            until, generation = self.clock() + again.good_for_s, self._registrar.renewals.generation
            self._driver.ask(
                again.item, partial(self._asked_again, due, peer, again.reply, until, generation)
            )

    def connected(self, peer: Peer) -> None:
        """A connection was accepted; nothing is known of it before it registers a broker."""

    def disconnected(self, peer: Peer, *, shutting_down: bool) -> None:
        """A connection has ended, for whatever reason."""
        self._closed.closed(peer, shutting_down=shutting_down)

    def begin_drain(self) -> None:
        """From now on send clients that understand it elsewhere, if enableShutdownGracefully says so."""
        self._draining = self.options.enable_shutdown_gracefully

    async def stop(self) -> None:
        """Answer what is under way, for a short while, and let go of the store."""
        if self._admission.waiting:
            self._last = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._last,), timeout=STOP_WAIT_S)
        await end((*self._background, *self._requests))
        await self._closed.stop()
        await self._ticker.stop()
        await self._driver.close()

    def _begin(self, command: Command, peer: Peer, done: Callable[[Answer], None]) -> None:
        dispatch.begin(self._request(command, peer), self._driver, done)

    def _request(self, command: Command, peer: Peer) -> Request:
        return Request(
            command=command,
            peer=peer,
            act=Act(f"{self.worker_id}-{next(self._numbers):x}", f"wire:{peer.address}"),
            keys=self._keys,
            options=self.options,
            owner=self._closed.mark(peer),
            registers=partial(self._closed.registers, peer),
            registrar=self._registrar,
        )

    def _asked_again(
        self, due: Due, peer: Peer, expected: object, until: float, generation: int, reply: object
    ) -> None:
        known = due.known
        self._leave(BEAT)
        if reply == expected:
            known.until, known.generation = until, generation
            peer.send(known.pieces(due.opaque))
        else:
            (self._registrations if isinstance(known, KnownRegistration) else self.cache.frames).forget(known)
            self.handle(decode(due.frame[4:]), peer, due.frame)

    def _made(self, command: Command, peer: Peer, frame: bytes, options: Options, answer: Answer) -> None:
        if peer.registered:
            self._closed.registered(peer)
        if answer.event_id and not self.follower.passed(answer.event_id):
            self.follower.when_reached(answer.event_id, partial(self._followed, answer, command, peer))
            return
        if answer.again is not None and frame:
            renewals = self._registrar.renewals
            if command.code == REGISTRATION:
                self._registrations.keep(frame, command, answer, renewals, peer.id, options)
            else:
                self.cache.frames.keep(frame, command, answer, renewals)
        self._answered(answer, command, peer)

    def _followed(self, answer: Answer, command: Command, peer: Peer, in_time: bool) -> None:
        """Send an answer when this worker's cache has followed what the request changed.

        Where the store went away meanwhile, the change may be lost, and what is known is all that can be answered."""
        if not in_time and self.follower.connected:
            self.cache.drop_all()  # so that this connection sees what it wrote all the same
        elif not in_time:
            answer = dispatch.STORE_AWAY
        self._answered(answer, command, peer)

    def _fill(self, key: Key, command: Command, peer: Peer) -> None:
        """Answer a request whose answer can be kept, made once for all who ask for it meanwhile."""
        fill = self.cache.fill_under_way(key)
        if fill is not None:
            fill.waiting.append((command, peer))
            return
        fill = self.cache.begin(key)
        fill.waiting.append((command, peer))
        if self.follower.connected:
            self._ask(fill)
        else:
            self._keep(self._ask_later(fill))

    async def _ask_later(self, fill: Fill) -> None:
        """A store that was away may come back empty, of which the follower tells: it comes first."""
        await self.follower.following(RECONNECT_S)
        self._ask(fill)

    def _ask(self, fill: Fill) -> None:
        fill.awaited = self._remembered.awaited
        if fill.key[1] is None:
            self._begin(*fill.waiting[0], partial(self._filled, fill))
        else:
            self._reader.ask(fill)

    def _route_read(self, fill: Fill, read: RoutesRead | Exception, at: int) -> None:
        topic, asked = fill.key
        assert asked is not None
        try:
            if isinstance(read, Exception):
                raise raised(read)
            answer = route_answer(read.route(topic, at), asked, self.options)
        except Exception as error:
            answer = dispatch.failed(self._request(*fill.waiting[0]), error)
        self._filled(fill, answer)

    def _filled(self, fill: Fill, answer: Answer) -> None:
        answer = self._remembered.over(fill.key, answer, fill.awaited)
        if self._product is not None and answer.code == ResponseCode.TOPIC_NOT_EXIST:
            self._keep(self._instead(self._product, fill, answer))
        else:
            self._end(fill, answer)

    async def _instead(self, product: ProductCluster, fill: Fill, missing: Answer) -> None:
        """A topic that this cluster does not have may be one of the product's."""
        answer = dispatch.failure("the server stops")
        try:
            answer = await product.instead(missing, fill.waiting[0][0], self.options)
        finally:
            self._end(fill, answer)

    def _end(self, fill: Fill, answer: Answer) -> None:
        self.cache.end(fill, answer if self.follower.connected else replace(answer, depends=None))
        for command, peer in fill.waiting:
            self._answered(answer, command, peer)

    def _answered(self, answer: Answer, command: Command, peer: Peer) -> None:
        _send(answer, command, peer)
        self._leave(command.code)
        self.long_frames.free(len(command.body))

    def _leave(self, code: int) -> None:
        self._admission.leave(code)
        if self._last is not None and not self._admission.waiting:
            _resolve(self._last, None)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    def _lapsed(self, names: set[str]) -> None:
        """Every tick: these brokers have members whose lease has ended, or turned out not to have."""
        self.cache.drop_brokers(names)
        if min(self.follower.lost_for_s(), self._ticker.good_for_s()) > UNFOLLOWED_S:
            self.cache.drop_all()  # the store is there, and yet we hear of no changes

    async def _read_settings(self) -> None:
        self.options = overlay(self._given, await self._driver.run(settings.read(self._keys)))

    def _readable(self, command: Command) -> Command:
        if command.opaque is None:
            command = replace(command, opaque=next(self._numbers) & 0x7FFFFFFF)
        return replace(command, serialize_type=SerializeType.JSON) if self._forced_json else command

    def _must_wait(self, command: Command) -> bool:
        """Whether the service is too young for this request (RocketMQ's needWaitForService)."""
        if command.code != GET_ROUTE or not self.options.need_wait_for_service:
            return False
        age_s = self._ticker.service_age_s()
        return age_s is None or age_s < self.options.wait_seconds_for_service


def _send(answer: Answer, command: Command, peer: Peer) -> None:
    if command.flag & ONEWAY_FLAG:
        return
    body = answer.body
    head = encode_header(command.reply(answer.code, remark=answer.remark, ext=answer.ext), len(body))
    peer.send((head, body) if body else head)


def _resolve(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)
