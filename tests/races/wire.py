"""Clients of a running server: each has its own connections, and looks up routes after each request."""

import signal
from functools import cache

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.route import decode_route
from testbed.broker import Broker, Topic
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.processes import Family, send
from tests.races.clients import Caller, Step, as_route
from tests.races.history import BEGIN, Position, Route, position
from tests.races.operations import Answered, Sent

LATELY = 50  # entries


class Line:
    """A client's connection, opened at first use: in the client's process. A `lossy` one may end at any time."""

    def __init__(self, server: NameServer, *, lossy: bool = False) -> None:
        self._server = server
        self._lossy = lossy
        self._over: Connection | None = None

    def __call__(self) -> Connection:
        self._over = self._over or Connection(self._server.port)
        return self._over

    def reopened(self, step: Step) -> Step:
        """Return the step, which ends with the connection; the next one opens another."""

        def to_its_end(caller: Caller, number: int) -> None:
            try:
                step(caller, number)
            except OSError:
                if not self._lossy:
                    raise
                self._over = None

        return to_its_end


def registers(over: Line, broker: Broker, topics: tuple[str, ...], *, shown: tuple[str, ...]) -> Step:
    """Register a new data version each step, which all topics have as their number of queues."""

    def step(caller: Caller, version: int) -> None:
        own = 100 * version + int(caller.name.removeprefix("w"))  # no two clients send the same version
        table = tuple(Topic(topic, queues=own) for topic in topics)
        reply = broker.but(topics=table, counter=own).register(over())
        if reply.code == ResponseCode.SUCCESS:
            caller.sent.append(Sent(_actor(over()), own))
        _looks(caller, over(), shown)

    return over.reopened(step)


def registers_and_disconnects(server: NameServer, broker: Broker, topics: tuple[str, ...]) -> Step:
    """Register, and reset the connection; the broker does not listen, so it is removed."""

    def step(caller: Caller, version: int) -> None:
        over = Connection(server.port)
        said = broker.but(topics=tuple(Topic(topic, queues=version) for topic in topics), counter=version)
        if said.register(over).code == ResponseCode.SUCCESS:
            caller.sent.append(Sent(_actor(over), version))
        _looks(caller, over, topics)
        over.reset()

    return step


def unregisters(over: Line, broker: Broker, *, shown: tuple[str, ...]) -> Step:
    def step(caller: Caller, _: int) -> None:
        caller.rest(0.03)
        assert broker.unregister(over()).code == ResponseCode.SUCCESS
        _looks(caller, over(), shown)

    return over.reopened(step)


def administers(over: Line, broker: Broker, topic: str) -> Step:
    """Send 205, 327 and 216 by rotation."""
    requests = (
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": broker.name}),
        (RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": broker.name}),
        (RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic}),
    )

    def step(caller: Caller, number: int) -> None:
        caller.rest(0.03)
        assert over().ask(*requests[number % len(requests)]).code in (
            ResponseCode.SUCCESS,
            ResponseCode.SYSTEM_ERROR,
        )
        _looks(caller, over(), (topic,))

    return over.reopened(step)


def looks(server: NameServer, topics: tuple[str, ...]) -> Step:
    """Look up topics over a connection to each worker."""

    @cache
    def observers() -> list[Connection]:
        connections: dict[int, Connection] = {}
        while len(connections) < server.workers:
            over = Connection(server.port)
            assert over.usable()
            connections.setdefault(server.worker_of(over), over)
        return list(connections.values())

    def step(caller: Caller, _: int) -> None:
        for over in observers():
            for topic in topics:
                _look(caller, over, topic, BEGIN)

    return step


def looks_over(over: Line, topics: tuple[str, ...]) -> Step:
    """Look up topics over one connection."""

    def step(caller: Caller, _: int) -> None:
        for topic in topics:
            _look(caller, over(), topic, BEGIN)

    return over.reopened(step)


def kills_workers(server: NameServer) -> Step:
    """Send SIGKILL to a worker now and then."""

    def step(caller: Caller, _: int) -> None:
        caller.rest(0.9)
        workers = Family.of(server.pid).remoting_workers
        if len(workers) == server.workers:
            send(signal.SIGKILL, caller.random.choice(workers))

    return step


def route_over(over: Connection, topic: str) -> Route:
    reply = over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    assert reply.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), reply.remark
    return as_route(decode_route(reply.body)) if reply.code == ResponseCode.SUCCESS else {}


def _looks(caller: Caller, over: Connection, topics: tuple[str, ...]) -> None:
    own = _last_of(caller, _actor(over))
    for topic in topics:
        _look(caller, over, topic, own)


def _look(caller: Caller, over: Connection, topic: str, lo: Position) -> None:
    route = route_over(over, topic)
    caller.answered[_actor(over), topic].append(Answered(topic, route, lo, caller.end()))


def _last_of(caller: Caller, actor: str) -> Position:
    """Return the last entry of an actor; the stream's begin if it is not among the last LATELY entries."""
    for event_id, fields in caller.store.xrevrange(caller.keys.events, count=LATELY):
        if fields.get("actor") == actor:
            return position(event_id)
    return BEGIN


def _actor(over: Connection) -> str:
    return f"wire:{over.local[0]}:{over.local[1]}"
