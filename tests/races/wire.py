"""Clients of a running server: each asks over connections of its own, and looks up routes after what it has done."""

from collections.abc import Callable
from functools import cache

from remoting.codes import RequestCode, ResponseCode
from remoting.route import decode_route
from tests.harness.broker import Broker, Topic
from tests.harness.connection import Connection
from tests.harness.nameserver import NameServer
from tests.races.asked import Answered, Sent
from tests.races.clients import Caller, Turn, as_route
from tests.races.history import BEGIN, Position, Route, position

LATELY = 50  # entries


def registers(server: NameServer, broker: Broker, topics: tuple[str, ...], *, shown: tuple[str, ...]) -> Turn:
    """A new data version each turn, which all topics carry as their number of queues."""
    over = _connection(server)

    def turn(caller: Caller, version: int) -> None:
        own = 100 * version + int(caller.name.removeprefix("w"))  # no two clients send the same version
        table = tuple(Topic(topic, queues=own) for topic in topics)
        answer = broker.but(topics=table, counter=own).register(over())
        if answer.code == ResponseCode.SUCCESS:
            caller.sent.append(Sent(_actor(over()), own))
        _looks(caller, over(), shown)

    return turn


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


def unregisters(server: NameServer, broker: Broker, *, shown: tuple[str, ...]) -> Turn:
    over = _connection(server)

    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.03)
        assert broker.unregister(over()).code == ResponseCode.SUCCESS
        _looks(caller, over(), shown)

    return turn


def administers(server: NameServer, broker: Broker, topic: str) -> Turn:
    """205, 327 and 216 in turn."""
    over = _connection(server)
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

    return turn


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


def route_over(over: Connection, topic: str) -> Route:
    answer = over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    assert answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), answer.remark
    return as_route(decode_route(answer.body)) if answer.code == ResponseCode.SUCCESS else {}


def _connection(server: NameServer) -> Callable[[], Connection]:
    """Opened at first use, which is in the client's process."""
    return cache(lambda: Connection(server.port))


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
