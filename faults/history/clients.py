"""Clients that make a history: brokers that come, stay, leave and fall silent, and readers, each a thread.

Names are of two kinds. A contended one has a master and a slave, and two brokers that would be the one or the other;
a lone one has a master that nobody disturbs. A slave is shown by cluster info only. Each broker has an address of its
own and listens there, so that a lost connection is no reason to remove it.
"""

import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from faults.history.operations import CLUSTERS, History, Kind, Operation, Register, Value
from remoting.cluster import decode_cluster_info
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command
from remoting.route import decode_route
from tests.harness.broker import Broker, Topic
from tests.harness.connection import Connection

CLUSTER = "history"
RECONNECT_S = 0.05
REFUSED_S = 1.0
"""A broker that was not acknowledged rests: each such request may still take effect, and the search tries all."""
LEASES_MS = (600, 30_000)
"""Of brokers that fall silent, and of those that do not."""
BACK_S, AWAY_S = 0.5, 1.7
"""After the end of its lease a silent broker is back within the one, most times before its lapse is recorded, or after
the other, when no reader may still see it."""
SILENT_RARELY, SILENT_OFTEN = 0.05, 0.4
"""The share of turns in which a broker falls silent: next to another, and alone."""
LOST = (OSError, AssertionError)  # an answer to another question is as bad as none


class Scale(msgspec.Struct, frozen=True):
    """How many names of each kind, and readers; how long (s) a client rests between two turns."""

    contended: int = 2
    lone: int = 2
    readers: int = 4
    broker_rest_s: float = 0.005
    reader_rest_s: float = 0.02


class Recorder:
    """Clients of the servers at `addresses` (`host:port`), from `start` to `stop`; made for one history.

    `prefix` begins the names of its brokers, which no one else may use. Connections are spread over the addresses."""

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
        """Let each end what it is at; all that they did. Raises what a client broke off with."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listeners.close()
        for client in self._clients:
            if client.failure is not None:
                raise client.failure
        operations = [one for client in self._clients for one in client.line.operations]
        operations.sort(key=lambda one: one.began_s)
        return History(tuple(operations), sum(client.line.unanswered for client in self._clients))


class _Listeners:
    """Where brokers listen: on free ports of the loopback, where connects succeed though nobody answers."""

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
    """A client's connection, opened anew whenever it is lost, and its notes."""

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
        """The answer, None when there was none; when it was asked for, and when it came or was given up."""
        began_s = time.monotonic()
        try:
            if self._over is None:
                self._over = Connection(self._port, host=self._host)
                self._number = next(self._numbers)
            answer = what(self._over)
        except LOST:
            ended_s = time.monotonic()
            self.leave()
            time.sleep(RECONNECT_S)
            return None, began_s, ended_s
        return answer, began_s, time.monotonic()

    def write(
        self, kind: Kind, place: Register, value: Value, lease_s: float, what: Callable[[Connection], Command]
    ) -> bool:
        """Ask for a change; whether it was acknowledged. An answer that is no success says nothing."""
        answer, began_s, ended_s = self.ask(what)
        done = answer is not None and answer.code == ResponseCode.SUCCESS
        self.operations.append(
            Operation(kind, place, value, self.client, self._number, began_s, ended_s, done, lease_s=lease_s)
        )
        return done

    def look_up(self, place: Register, topic: str) -> None:
        """The route of a topic that only this place's master has."""
        answer, began_s, ended_s = self.ask(
            lambda over: over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        )
        if answer is None or answer.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            self.unanswered += 1
            return
        seen = _in_route(answer.body, place.broker) if answer.code == ResponseCode.SUCCESS else None
        self._saw(place, topic, seen, began_s, ended_s)

    def look_at_clusters(self, places: Sequence[Register]) -> None:
        """The addresses of these places, all in one answer."""
        answer, began_s, ended_s = self.ask(lambda over: over.ask(RequestCode.GET_BROKER_CLUSTER_INFO))
        if answer is None or answer.code != ResponseCode.SUCCESS:
            self.unanswered += 1
            return
        table = decode_cluster_info(answer.body).broker_addr_table
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
    """Those that show a master's version."""
    return (f"{place.broker}-T0", f"{place.broker}-T1") if place.number == 0 else ()


def _in_route(body: bytes, name: str) -> Value | None:
    """What a route shows of a place; something that nobody has written where the route contradicts itself."""
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


class _Client:
    """Takes turns until the end of the history."""

    def __init__(self, line: _Line, rest_s: float) -> None:
        self.line = line
        self.failure: Exception | None = None
        self._rest_s = rest_s

    def run(self, over: threading.Event) -> None:
        try:
            while not over.is_set():
                self.turn(over)
                over.wait(self._rest_s * 2 * self.line.chance.random())
        except Exception as failure:
            self.failure = failure
        finally:
            self.line.leave()

    def turn(self, over: threading.Event) -> None:
        raise NotImplementedError


class _Reader(_Client):
    """Asks for everything in turn; now and then over another connection."""

    def __init__(self, line: _Line, places: Sequence[Register], rest_s: float) -> None:
        super().__init__(line, rest_s)
        self._places = places

    def turn(self, over: threading.Event) -> None:
        for place in self._places:
            for topic in topics_of(place):
                self.line.look_up(place, topic)
        self.line.look_at_clusters(self._places)
        if self.line.chance.random() < 0.002:
            self.line.leave()


class _BrokerClient(_Client):
    """One of those that contend for a place: registers a new version, repeats the last one, leaves, or falls silent
    until after its lease; and looks each time at what has become of it."""

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

    def turn(self, over: threading.Event) -> None:
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
        """Others look on meanwhile."""
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
