"""Clients of a running server: each asks over connections of its own, and looks up routes after what it has done."""

import signal
from functools import cache

from remoting.codes import RequestCode, ResponseCode
from remoting.route import decode_route
from tests.harness.broker import Broker, Topic
from tests.harness.connection import Connection
from tests.harness.nameserver import NameServer
from tests.races.asked import Answered, Sent
from tests.races.clients import Caller, Turn, as_route
from tests.races.history import BEGIN, Position, Route, position
from tests.service.processes import Family, send

LATELY = 50  # entries


class Line:
    """A client's connection, opened at first use: in the client's process. A `lossy` one may be lost at any time."""

    def __init__(self, server: NameServer, *, lossy: bool = False) -> None:
        self._server = server
        self._lossy = lossy
        self._over: Connection | None = None

    def __call__(self) -> Connection:
        self._over = self._over or Connection(self._server.port)
        return self._over

    def kept(self, turn: Turn) -> Turn:
        """The turn, which ends when the connection does; the next one has another."""

        def to_its_end(caller: Caller, number: int) -> None:
            try:
                turn(caller, number)
            except OSError:
                if not self._lossy:
                    raise
                self._over = None

        return to_its_end


def registers(over: Line, broker: Broker, topics: tuple[str, ...], *, shown: tuple[str, ...]) -> Turn:
    """A new data version each turn, which all topics carry as their number of queues."""

    def turn(caller: Caller, version: int) -> None:
        own = 100 * version + int(caller.name.removeprefix("w"))  # no two clients send the same version
        table = tuple(Topic(topic, queues=own) for topic in topics)
        answer = broker.but(topics=table, counter=own).register(over())
        if answer.code == ResponseCode.SUCCESS:
            caller.sent.append(Sent(_actor(over()), own))
        _looks(caller, over(), shown)

    return over.kept(turn)


def comes_and_is_lost(server: NameServer, broker: Broker, topics: tuple[str, ...]) -> Turn:
    """Registers, and its connection is reset. It listens nowhere, so it is taken for dead."""

    def turn(caller: Caller, version: int) -> None:
        over = Connection(server.port)
        said = broker.but(topics=tuple(Topic(topic, queues=version) for topic in topics), counter=version)
        if said.register(over).code == ResponseCode.SUCCESS:
            caller.sent.append(Sent(_actor(over), version))
        _looks(caller, over, topics)
        over.reset()

    return turn


def unregisters(over: Line, broker: Broker, *, shown: tuple[str, ...]) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.03)
        assert broker.unregister(over()).code == ResponseCode.SUCCESS
        _looks(caller, over(), shown)

    return over.kept(turn)


def administers(over: Line, broker: Broker, topic: str) -> Turn:
    """205, 327 and 216 in turn."""
    asked = (
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": broker.name}),
        (RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": broker.name}),
        (RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic}),
    )

    def turn(caller: Caller, number: int) -> None:
        caller.rest(0.03)
        assert over().ask(*asked[number % len(asked)]).code in (
            ResponseCode.SUCCESS,
            ResponseCode.SYSTEM_ERROR,
        )
        _looks(caller, over(), (topic,))

    return over.kept(turn)


def looks(server: NameServer, topics: tuple[str, ...]) -> Turn:
    """Lookups over a connection to each worker."""

    @cache
    def observers() -> list[Connection]:
        found: dict[int, Connection] = {}
        while len(found) < server.workers:
            over = Connection(server.port)
            assert over.usable()
            found.setdefault(server.worker_of(over), over)
        return list(found.values())

    def turn(caller: Caller, _: int) -> None:
        for over in observers():
            for topic in topics:
                _look(caller, over, topic, BEGIN)

    return turn


def looks_over(over: Line, topics: tuple[str, ...]) -> Turn:
    """Lookups, to whichever worker it is."""

    def turn(caller: Caller, _: int) -> None:
        for topic in topics:
            _look(caller, over(), topic, BEGIN)

    return over.kept(turn)


def kills_workers(server: NameServer) -> Turn:
    """SIGKILL to a worker now and then, whatever it is doing."""

    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.9)
        workers = Family.of(server.pid).remoting_workers
        if len(workers) == server.workers:
            send(signal.SIGKILL, caller.random.choice(workers))

    return turn


def route_over(over: Connection, topic: str) -> Route:
    answer = over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    assert answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), answer.remark
    return as_route(decode_route(answer.body)) if answer.code == ResponseCode.SUCCESS else {}


def _looks(caller: Caller, over: Connection, topics: tuple[str, ...]) -> None:
    own = _last_of(caller, _actor(over))
    for topic in topics:
        _look(caller, over, topic, own)


def _look(caller: Caller, over: Connection, topic: str, lo: Position) -> None:
    route = route_over(over, topic)
    caller.answered[_actor(over), topic].append(Answered(topic, route, lo, caller.end()))


def _last_of(caller: Caller, actor: str) -> Position:
    """The last entry of what was acknowledged to an actor; the stream's begin when it is not among the last ones."""
    for event_id, fields in caller.store.xrevrange(caller.keys.events, count=LATELY):
        if fields.get("actor") == actor:
            return position(event_id)
    return BEGIN


def _actor(over: Connection) -> str:
    return f"wire:{over.local[0]}:{over.local[1]}"
