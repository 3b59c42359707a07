"""The name servers side by side, with their connections."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType, encode
from testbed.connection import OPAQUES, Closed, Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.ports import free_port
from testbed.properties import write_properties
from testbed.rocketmq.releases import release
from testbed.rocketmq.stage import Stage
from tests.differential.answers import CLOSED, SILENT, USABLE, Seen, seen
from tests.differential.bodies import checked, packed
from tests.differential.world import Ask, World

JAVA_4, JAVA_5, OURS = "4.9.7", "5.5.0", "ours"
BOOT_S = 60.0
PATIENT = {"serverChannelMaxIdleTimeSeconds": "86400"}
"""An example may be longer than the time after which a connection that only looks would be closed."""
OPTIONS_OF_5X = frozenset(
    {
        "returnOrderTopicConfigToBroker",
        "supportActingMaster",
        "deleteTopicWithBrokerRegistration",
        "enableTopicList",
        "enableAllTopicList",
    }
)
OPTIONS = OPTIONS_OF_5X | {
    "orderMessageEnable",
    "productEnvName",
    "clusterTest",
    "serverChannelMaxIdleTimeSeconds",
}
"""Options by which 318 and 319 are compared: those of Java's server and this one, without ports, paths and sizes."""
DEFAULTS = (
    "orderMessageEnable=false\nreturnOrderTopicConfigToBroker=true\nsupportActingMaster=false\n"
    "deleteTopicWithBrokerRegistration=false\nenableTopicList=true\nenableAllTopicList=true\n"
)
GENERAL = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
BROKEN_S = 3.0
REACTION_S = 0.5


class Side:
    """One name server, the brokers' connections to it, and connections for lookups."""

    def __init__(self, label: str, port: int, observers: Sequence[Connection]) -> None:
        self.label = label
        self.port = port
        self.observers = observers
        self._connections: dict[int, Connection] = {}

    def connection(self, number: int) -> Connection:
        """Return the connection of that number, opened at its first use."""
        if number not in self._connections:
            self._connections[number] = Connection(self.port)
        return self._connections[number]

    def send(self, ask: Ask, world: World) -> int:
        """Send a request and return its opaque."""
        command = as_command(ask, world)
        self.connection(ask.over).send(encode(command))
        assert command.opaque is not None
        return command.opaque

    def receive(self, ask: Ask, opaque: int, world: World) -> Seen:
        """Return the reply; nothing else may come over that connection."""
        try:
            answer = self.connection(ask.over).receive()
        except Closed:
            self.cut(ask.over)
            return CLOSED
        except TimeoutError:
            return SILENT
        assert (answer.opaque, answer.flag) == (opaque, 1), (self.label, ask, answer)
        return seen(ask.code, answer, world, OPTIONS)

    def look(self, asks: Sequence[Ask], world: World) -> list[list[Seen]]:
        """Return each observer's replies, in the order of the requests."""
        sent = []
        for observer in self.observers:
            commands = [as_command(ask, world) for ask in asks]
            observer.send(b"".join(encode(command) for command in commands))
            sent.append(commands)
        looks = []
        for observer, commands in zip(self.observers, sent, strict=True):
            answers = {answer.opaque: answer for answer in (observer.receive() for _ in commands)}
            looks.append(
                [
                    seen(ask.code, answers[command.opaque], world, OPTIONS)
                    for ask, command in zip(asks, commands, strict=True)
                ]
            )
        return looks

    def cut(self, number: int) -> None:
        """Close that connection, if there is one."""
        if number in self._connections:
            self._connections.pop(number).close()

    def closed_by_peer(self, number: int) -> bool:
        """Return whether the server closes that connection."""
        closed = number not in self._connections or self._connections[number].closed(BROKEN_S)
        self.cut(number)
        return closed

    def broken(self, frame: bytes, world: World) -> Seen:
        """Send bytes on a new connection and return the result: a reply, its end, or nothing (USABLE)."""
        connection = Connection(self.port, first=frame)
        good = Command(int(GENERAL), next(OPAQUES), 0, 373)
        try:
            if not connection.silent(REACTION_S):
                return seen(GENERAL, connection.receive(), world, OPTIONS)
            connection.send(encode(good))
            answer = connection.receive(BROKEN_S)
            if answer.opaque == good.opaque and not connection.silent(REACTION_S):
                answer = connection.receive()  # Java's threads may overtake each other
        except (Closed, BrokenPipeError, ConnectionResetError):
            return CLOSED
        except TimeoutError:
            return SILENT
        finally:
            connection.close()
        return USABLE if answer.opaque == good.opaque else seen(GENERAL, answer, world, OPTIONS)

    def forget(self, world: World) -> None:
        """Remove all that a world has left here."""
        number = -1
        over = self.connection(number)

        def ask(code: int, ext: dict[str, str] | None = None, body: bytes = b"") -> Command:
            return over.ask(code, ext, body)

        for key in list(self._connections):
            if key != number:
                self.cut(key)
        ask(318, body=DEFAULTS.encode())
        # Java encodes what threads of closed connections change: its reply may be a ConcurrentModificationException.
        info = eventually(lambda: seen(106, ask(106), world, OPTIONS).body)
        for name, group in info["brokerAddrTable"].items():
            clusters = {c for c, names in info["clusterAddrTable"].items() if name in names} | {
                group["cluster"]
            }
            for cluster in clusters:
                for key, addr in (group["brokerAddrs"] or {"0": "~0"}).items():
                    fields = {"brokerName": name, "clusterName": cluster, "brokerAddr": addr, "brokerId": key}
                    ask(104, {field: world.filled(text) for field, text in fields.items()})
        for topic in seen(206, ask(206), world, OPTIONS).body["topicList"]:
            ask(216, {"topic": world.filled(topic)})
        table = seen(219, ask(219, {"namespace": "ORDER_TOPIC_CONFIG"}), world, OPTIONS).body["table"]
        for key in table:
            ask(102, {"namespace": "ORDER_TOPIC_CONFIG", "key": world.filled(key)})
        self.cut(number)


def as_command(ask: Ask, world: World) -> Command:
    """Return the request with the world's names."""
    body = packed(world.filled(ask.body), ask.packing, ask.version)
    ext = None if ask.ext is None else {key: world.filled(text) for key, text in ask.ext.items()}
    kind = SerializeType.ROCKETMQ if ask.binary else SerializeType.JSON
    flag = 2 if ask.oneway else 0
    return Command(
        ask.code, next(OPAQUES), flag, ask.version, ext=checked(ext, body), body=body, serialize_type=kind
    )


class Sides(Struct, frozen=True):
    """The servers under comparison; `java` by release."""

    ours: Side
    java: dict[str, Side]

    @property
    def all(self) -> list[Side]:
        return [*self.java.values(), self.ours]


@contextmanager
def sides(folder: Path) -> Iterator[Sides]:
    """Start Java's two name servers and this one with two workers and its own store."""
    ours = NameServer(folder / "ours", PATIENT)
    with Stage(folder) as stage:
        ports = {version: begin_java(stage, version) for version in (JAVA_4, JAVA_5)}
        try:
            ours.start()
            java = {
                version: Side(version, port, [patiently_connected(port)]) for version, port in ports.items()
            }
            all_sides = Sides(Side(OURS, ours.port, _one_for_each_worker(ours)), java)
            for side in all_sides.all:
                _make_order_namespace(side.observers[0])
            yield all_sides
        finally:
            ours.stop()


def begin_java(stage: Stage, version: str) -> int:
    port = free_port()
    options = {
        "listenPort": str(port),
        "bindAddress": "127.0.0.1",
        "scanNotActiveBrokerInterval": "50",
        **PATIENT,
    }
    path = write_properties(stage.folder / version / "namesrv.conf", options)
    main = "org.apache.rocketmq.namesrv.NamesrvStartup"
    stage.java(version, release(version), main, "-c", str(path), heap_mb=128)
    return port


def patiently_connected(port: int) -> Connection:
    """Return a connection to a server that is about to start."""

    def connected() -> list[Connection]:
        try:
            return [Connection(port)]
        except ConnectionRefusedError:
            return []

    return eventually(connected, BOOT_S)[0]


def _one_for_each_worker(server: NameServer) -> list[Connection]:
    connections: dict[int, Connection] = {}

    def look() -> list[Connection]:
        connection = Connection(server.port)
        assert connection.usable()
        connections.setdefault(server.worker_of(connection), connection)
        return list(connections.values()) if len(connections) == server.workers else []

    return eventually(look, BOOT_S)


def _make_order_namespace(over: Connection) -> None:
    """Create the KV namespace, which no request can delete, so that every example has it."""
    key = {"namespace": "ORDER_TOPIC_CONFIG", "key": "none"}
    for code, ext in (
        (RequestCode.PUT_KV_CONFIG, key | {"value": "none"}),
        (RequestCode.DELETE_KV_CONFIG, key),
    ):
        assert over.ask(code, ext).code == 0
