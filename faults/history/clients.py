"""Clients that make a history: brokers that register, unregister and fall silent, and readers, each a thread.

Names are of two kinds. A contended one has a master and a slave, and two brokers that would be the one or the other;
a lone one has a master without a rival. A slave is shown by cluster info only. Each broker has an address of its
own and listens there, so that a closed connection is no reason to remove it.
"""

import itertools
import random
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from faults.history.operations import CLUSTERS, History, Kind, Operation, Register, Value
from rocketmq_remoting.cluster import decode_cluster_info
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.route import decode_route
from testbed.broker import Broker, Topic
from testbed.connection import Connection

CLUSTER = "history"
RECONNECT_S = 0.05
REFUSED_S = 1.0
"""A broker that was not acknowledged rests: each such request may still take effect, and the search tries all."""
LEASES_MS = (600, 30_000)
"""Leases of brokers that fall silent, and of those that do not."""
BACK_S, AWAY_S = 0.5, 1.7
"""After the end of its lease a silent broker is back within the one, most times before its lapse is recorded, or after
the other, when no reader may still see it."""
SILENT_RARELY, SILENT_OFTEN = 0.05, 0.4
"""The fraction of steps in which a broker falls silent: next to another, and alone."""
NO_REPLY = (OSError, AssertionError)  # a reply to another request is as bad as none


class Scale(msgspec.Struct, frozen=True):
    """The numbers of names of each kind and of readers; how long (s) a client rests between two steps."""

    contended: int = 2
    lone: int = 2
    readers: int = 4
    broker_rest_s: float = 0.005
    reader_rest_s: float = 0.02


class Recorder:
    """Clients of the servers at `addresses` (`host:port`), from `start` to `stop`; made for one history.

    `prefix` begins the names of its brokers: no other client may use it. Connections are spread over the addresses."""

    def __init__(
        self, addresses: Sequence[str], *, scale: Scale | None = None, prefix: str = "history", seed: int = 0
    ) -> None:
        self._over = threading.Event()
        self._listeners = _Listeners()
        scale = scale or Scale()
        contended = [
            Register(f"{prefix}-contended-{index}", number)
            for index in range(scale.contended)
            for number in (0, 1)
        ]
        lone = [Register(f"{prefix}-lone-{index}", 0) for index in range(scale.lone)]
        brokers = [(place, twin, SILENT_RARELY) for place in contended for twin in "ab"]
        brokers += [(place, "", SILENT_OFTEN) for place in lone]
        versions, connections = itertools.count(1), itertools.count(1)
        where = itertools.cycle(addresses)

        def line(client: str) -> _Line:
            return _Line(next(where), client, connections, random.Random(f"{seed}/{client}"))

        self._clients: list[_Client] = [
            _BrokerClient(
                line(f"{place}{twin}"),
                place,
                self._listeners.listen(),
                versions,
                silent,
                scale.broker_rest_s,
            )
            for place, twin, silent in brokers
        ]
        self._clients += [
            _Reader(line(f"reader-{number}"), contended + lone, scale.reader_rest_s)
            for number in range(scale.readers)
        ]
        self._threads = [
            threading.Thread(target=client.run, args=(self._over,), daemon=True) for client in self._clients
        ]

    def start(self) -> None:
        """Let all clients begin; returns at once."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> History:
        """Stop all clients after their current step and return their history. Raises a client's exception."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listeners.close()
        for client in self._clients:
            if client.failure is not None:
                raise client.failure
        operations = [operation for client in self._clients for operation in client.line.operations]
        operations.sort(key=lambda operation: operation.began_s)
        return History(tuple(operations), sum(client.line.unanswered for client in self._clients))


class _Listeners:
    """Listening sockets of brokers, on free ports of the loopback, that close every connection."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def listen(self) -> str:
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._sockets.append(listener)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        host, port = listener.getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        for listener in self._sockets:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    @staticmethod
    def _accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                listener.accept()[0].close()


class _Line:
    """A client's connection, opened again after it was closed, and the client's operations."""

    def __init__(self, address: str, client: str, numbers: Iterator[int], chance: random.Random) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        self._numbers = numbers
        self._number = 0
        self._over: Connection | None = None
        self.client = client
        self.chance = chance
        self.operations: list[Operation] = []
        self.unanswered = 0

    def ask(self, what: Callable[[Connection], Command]) -> tuple[Command | None, float, float]:
        """Return the reply, None without one; the times of the request, and of the reply or the failure."""
        began_s = time.monotonic()
        try:
            if self._over is None:
                self._over = Connection(self._port, host=self._host)
                self._number = next(self._numbers)
            reply = what(self._over)
        except NO_REPLY:
            ended_s = time.monotonic()
            self.leave()
            time.sleep(RECONNECT_S)
            return None, began_s, ended_s
        return reply, began_s, time.monotonic()

    def write(
        self, kind: Kind, place: Register, value: Value, lease_s: float, what: Callable[[Connection], Command]
    ) -> bool:
        """Request a change and return whether it was acknowledged; after an error reply it may be made or not."""
        reply, began_s, ended_s = self.ask(what)
        done = reply is not None and reply.code == ResponseCode.SUCCESS
        self.operations.append(
            Operation(kind, place, value, self.client, self._number, began_s, ended_s, done, lease_s=lease_s)
        )
        return done

    def look_up(self, place: Register, topic: str) -> None:
        """Look up the route of a topic that only this place's master has."""
        reply, began_s, ended_s = self.ask(
            lambda over: over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        )
        if reply is None or reply.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            self.unanswered += 1
            return
        seen = _in_route(reply.body, place.broker) if reply.code == ResponseCode.SUCCESS else None
        self._saw(place, topic, seen, began_s, ended_s)

    def look_at_clusters(self, places: Sequence[Register]) -> None:
        """Look up the addresses of these places in one cluster info."""
        reply, began_s, ended_s = self.ask(lambda over: over.ask(RequestCode.GET_BROKER_CLUSTER_INFO))
        if reply is None or reply.code != ResponseCode.SUCCESS:
            self.unanswered += 1
            return
        table = decode_cluster_info(reply.body).broker_addr_table
        for place in places:
            addresses = table[place.broker].broker_addrs if place.broker in table else {}
            seen = Value(addresses[place.number]) if place.number in addresses else None
            self._saw(place, CLUSTERS, seen, began_s, ended_s)

    def leave(self) -> None:
        """Close the connection, if there is one."""
        if self._over is not None:
            self._over.close()
            self._over = None

    def _saw(
        self, place: Register, question: str, seen: Value | None, began_s: float, ended_s: float
    ) -> None:
        self.operations.append(
            Operation("lookup", place, seen, self.client, self._number, began_s, ended_s, question=question)
        )


def topics_of(place: Register) -> tuple[str, ...]:
    """Return the topics that show a master's version."""
    return (f"{place.broker}-T0", f"{place.broker}-T1") if place.number == 0 else ()


def _in_route(body: bytes, name: str) -> Value | None:
    """Return what a route shows of a place; a value that was never written if the route contradicts itself."""
    route = decode_route(body)
    addresses = {data.broker_name: data.broker_addrs for data in route.broker_datas}
    queues = [data for data in route.queue_datas if data.broker_name == name]
    if [*addresses] != [name] or len(queues) != 1:
        return Value(f"a route of {addresses} with {queues}")
    if 0 not in addresses[name]:
        return None
    (data,) = queues
    torn = data.write_queue_nums != data.read_queue_nums
    return Value(f"a route with {data}" if torn else addresses[name][0], data.read_queue_nums)


class _Client(ABC):
    """A thread that repeats `step` until the end of the history."""

    def __init__(self, line: _Line, rest_s: float) -> None:
        self.line = line
        self.failure: Exception | None = None
        self._rest_s = rest_s

    def run(self, over: threading.Event) -> None:
        try:
            while not over.is_set():
                self.step(over)
                over.wait(self._rest_s * 2 * self.line.chance.random())
        except Exception as failure:
            self.failure = failure
        finally:
            self.line.leave()

    @abstractmethod
    def step(self, over: threading.Event) -> None:
        """Do one operation, or a few that belong together; `over` is set at the end of the history."""


class _Reader(_Client):
    """Looks up all places one after the other; now and then over a new connection."""

    def __init__(self, line: _Line, places: Sequence[Register], rest_s: float) -> None:
        super().__init__(line, rest_s)
        self._places = places

    def step(self, over: threading.Event) -> None:
        for place in self._places:
            for topic in topics_of(place):
                self.line.look_up(place, topic)
        self.line.look_at_clusters(self._places)
        if self.line.chance.random() < 0.002:
            self.line.leave()


class _BrokerClient(_Client):
    """A broker of a place: registers a new version, repeats the last one, unregisters, or falls silent until after
    its lease; and looks up the place each time."""

    def __init__(
        self,
        line: _Line,
        place: Register,
        address: str,
        versions: Iterator[int],
        silent: float,
        rest_s: float,
    ) -> None:
        super().__init__(line, rest_s)
        self._place = place
        self._address = address
        self._versions = versions
        self._silent = silent
        self._broker = Broker()

    def step(self, over: threading.Event) -> None:
        chance = self.line.chance.random()
        if not self.line.operations:
            self._register(self._next())
        elif chance < self._silent:
            self._fall_silent(over)
        elif chance < self._silent + 0.3:
            self._register(self._broker)
        elif chance < self._silent + 0.4:
            self._unregister()
        else:
            self._register(self._next())
        self._look()

    def _next(self) -> Broker:
        version = next(self._versions)
        names = topics_of(self._place) or ("S0", "S1")  # one alone is refused to a newcomer
        self._broker = Broker(
            self._place.broker,
            self._place.number,
            self._address,
            cluster=CLUSTER,
            topics=tuple(Topic(name, queues=version) for name in names),
            counter=version,
            timeout_ms=self.line.chance.choice(LEASES_MS),
        )
        return self._broker

    def _register(self, broker: Broker) -> None:
        assert broker.timeout_ms is not None
        value = Value(self._address, broker.counter)
        self._write("register", value, broker.timeout_ms / 1000, broker.register)

    def _unregister(self) -> None:
        self._write("unregister", Value(self._address), 0.0, self._broker.unregister)

    def _write(self, kind: Kind, value: Value, lease_s: float, what: Callable[[Connection], Command]) -> None:
        if not self.line.write(kind, self._place, value, lease_s, what):
            time.sleep(REFUSED_S)

    def _fall_silent(self, over: threading.Event) -> None:
        """Register, send nothing until after the lease, look up the place and register again."""
        self._broker = self._broker.but(timeout_ms=LEASES_MS[0])
        self._register(self._broker)
        chance = self.line.chance
        over.wait(LEASES_MS[0] / 1000 + chance.choice((BACK_S * chance.random(), AWAY_S)))
        self._look()
        self._register(self._broker)

    def _look(self) -> None:
        for topic in topics_of(self._place):
            self.line.look_up(self._place, topic)
        self.line.look_at_clusters((self._place,))
