"""What Java's own peers once asked is asked again, and the answers mean what Java's server answered.

Each capture in tests/golden/ is replayed in order of time, one connection for each of its connections. Where an
answer may differ, one rule of DIFFERENCES says so. What a capture does not show of its server's state is in GIVEN.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, structs

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode
from rocketmq_remoting.properties import parse_properties
from rocketmq_remoting.remoting_command import ONEWAY_FLAG
from rocketmq_remoting.route import decode_route
from rocketmq_remoting.tolerant_json import normalise
from rocketmq_remoting.version import CURRENT
from testbed.broker import Broker, Topic
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.scene import ORDER_TOPIC_CONFIG, Scene

CAPTURES = sorted((Path(__file__).parents[1] / "golden").glob("ns-*.jsonl"))
READS = {
    RequestCode.GET_KV_CONFIG,
    RequestCode.GET_ROUTEINFO_BY_TOPIC,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    RequestCode.GET_NAMESRV_CONFIG,
    RequestCode.GET_BROKER_MEMBER_GROUP,
}
"""Asked again for a moment until the answer is right: what came oneway before may still be on its way."""


class Exchange(Struct, frozen=True):
    """One request of a capture and Java's answer to it, None to a oneway request; `t` in s."""

    capture: str
    peer: str
    conn: int
    t: float
    sent: bytes
    answer: Command | None

    @property
    def code(self) -> int:
        return decode(self.sent[4:]).code

    def is_4x(self) -> bool:
        return self.capture.startswith("ns-4")


class Meaning(Struct, frozen=True):
    """What an answer says; lists in JSON and properties are in order, maps and absent members made equal."""

    code: int
    remark: str | None
    ext: dict[str, str]
    body: Any


class Difference(Struct, frozen=True):
    """Why an answer may differ from Java's: `forgive` makes both answers of `applies` equal in this point."""

    why: str
    applies: Callable[[Exchange], bool]
    forgive: Callable[[Meaning], Meaning]


def exchanges(capture: Path) -> list[Exchange]:
    """All requests of a capture in the order in which they were sent."""
    frames = [json.loads(line) for line in capture.read_text().splitlines()]
    answers: dict[tuple[int, int], list[Command]] = {}
    for frame in frames:
        if frame["from"] == "server":
            answer = decode(bytes.fromhex(frame["hex"])[4:])
            answers.setdefault((frame["conn"], frame["header"]["opaque"]), []).append(answer)
    exchanges_sent = []
    for frame in sorted(frames, key=lambda frame: float(frame["t"])):
        if frame["from"] == "peer":
            sent = bytes.fromhex(frame["hex"])
            oneway = frame["header"]["flag"] & ONEWAY_FLAG
            wanted = None if oneway else answers[frame["conn"], frame["header"]["opaque"]].pop(0)
            exchanges_sent.append(
                Exchange(capture.stem, frame["peer"], frame["conn"], frame["t"], sent, wanted)
            )
    return exchanges_sent


def meaning(answer: Command, exchange: Exchange) -> Meaning:
    body: Any = None
    if answer.body:
        listing = exchange.code == RequestCode.GET_NAMESRV_CONFIG
        text = answer.body.decode()
        body = parse_properties(text) if listing else changed(json.loads(normalise(answer.body)))
    said = Meaning(answer.code, answer.remark, answer.ext or {}, body)
    for difference in DIFFERENCES:
        if difference.applies(exchange):
            said = difference.forgive(said)
    return said


def changed(value: Any, member: Callable[[str, Any], tuple[str, Any] | None] = lambda *pair: pair) -> Any:
    """JSON with each member of each map as `member` gives it back (None: without it), and lists in order."""
    if isinstance(value, dict):
        pairs = (member(key, changed(inner, member)) for key, inner in value.items())
        return dict(pair for pair in pairs if pair)
    if isinstance(value, list):
        return sorted((changed(inner, member) for inner in value), key=repr)
    return value


def without(said: Meaning, *keys: str) -> Meaning:
    """The body without these members, wherever they are."""
    return structs.replace(
        said, body=changed(said.body, lambda key, value: None if key in keys else (key, value))
    )


OF_THE_MACHINE = ("bindAddress", "configStorePath", "kvConfigPath", "listenPort", "rocketmqHome")
D_DECODED = {RequestCode.REGISTER_BROKER, RequestCode.GET_BROKER_CLUSTER_INFO}
DIFFERENCES = (
    Difference(
        "4.8.0 spells topicSysFlag otherwise",
        Exchange.is_4x,
        lambda said: structs.replace(
            said,
            body=changed(
                said.body, lambda key, value: ("topicSysFlag" if key == "topicSynFlag" else key, value)
            ),
        ),
    ),
    Difference(
        "servers of 4.x know no acting master",
        Exchange.is_4x,
        lambda said: without(said, "enableActingMaster"),
    ),
    Difference(
        "the link in the remark of 17 is that of 5.x",
        Exchange.is_4x,
        lambda said: structs.replace(said, remark=said.remark and said.remark.split("\nSee ")[0]),
    ),
    Difference(
        "Java forgets to take a default remark off the answer of 901",
        lambda exchange: exchange.code == RequestCode.GET_BROKER_MEMBER_GROUP,
        lambda said: structs.replace(said, remark=None),
    ),
    Difference(
        "319 tells the machine's paths, addresses and ports",
        lambda exchange: exchange.code == RequestCode.GET_NAMESRV_CONFIG,
        lambda said: without(said, *OF_THE_MACHINE),
    ),
    Difference(
        "319 of 4.x lists other options",
        lambda exchange: exchange.is_4x() and exchange.code == RequestCode.GET_NAMESRV_CONFIG,
        lambda said: structs.replace(said, body=None),
    ),
    Difference(
        "a compressed body whose header says that it is not is understood (103-20)",
        lambda exchange: exchange.peer == "compressed-5.5.0" and exchange.code in D_DECODED,
        lambda said: structs.replace(without(said, "broker-d", "DefaultCluster"), code=0, remark=None),
    ),
)


class Replay:
    """Plays a capture on a scene, a connection for each of its connections."""

    def __init__(self, ns: Scene, capture: Path) -> None:
        self.ns = ns
        self.exchanges = exchanges(capture)
        self.brokers: dict[tuple[str, int], Broker] = {}
        self._connections: dict[int, Connection] = {}

    def over(self, conn: int) -> Connection:
        if conn not in self._connections:
            self._connections[conn] = self.ns.connect()
        return self._connections[conn]

    def play(self, exchange: Exchange) -> None:
        """Send a request and compare the answer."""
        over, wanted = self.over(exchange.conn), exchange.answer

        def same() -> bool:
            over.send(exchange.sent)
            if wanted is None:
                return True
            answer = over.receive()
            assert (answer.opaque, answer.flag, answer.version) == (wanted.opaque, wanted.flag, CURRENT)
            assert answer.serialize_type is decode(exchange.sent[4:]).serialize_type
            assert meaning(answer, exchange) == meaning(wanted, exchange)
            return True

        if exchange.code in READS:
            eventually(same)
        else:
            assert same()

    def kill(self, conn: int) -> None:
        """The process behind a connection is killed."""
        self.over(conn).reset()

    def register_again(self, conn: int, over: int) -> None:
        """The last registration of a connection comes again over another one."""
        registrations = [
            one for one in self.exchanges if (one.conn, one.code) == (conn, RequestCode.REGISTER_BROKER)
        ]
        self.over(over).send(registrations[-1].sent)
        assert self.over(over).receive().code == 0

    def put_order_configuration(self) -> None:
        self.ns.put_kv(ORDER_TOPIC_CONFIG, "TopicTest", "broker-a:4")

    def start_brokers(self) -> None:
        """The brokers in the capture's answers, with the topics as they first appear."""
        tables: dict[str, dict[str, Topic]] = {}
        for exchange in self.exchanges:
            answer, topic = exchange.answer, decode(exchange.sent[4:]).get("topic")
            if exchange.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and answer and answer.code == 0 and topic:
                for data in decode_route(answer.body).queue_datas:
                    first = Topic(topic, data.read_queue_nums, data.perm, data.topic_sys_flag)
                    tables.setdefault(data.broker_name, {}).setdefault(topic, first)
        for name, number, port in (("broker-a", 0, 10911), ("broker-a", 1, 10931), ("broker-b", 0, 10921)):
            topics = tuple(tables[name].values())
            self.brokers[name, number] = Broker(
                name, number, f"127.0.0.1:{port}", cluster="DefaultCluster", topics=topics, acting=False
            )
            self.register(name, number, counter=1)

    def register(self, name: str, number: int = 0, **changes: Any) -> None:
        """One of the brokers started so registers (again)."""
        assert self.brokers[name, number].but(**changes).register(self.ns.connect()).code == 0

    def set_perm(self, name: str, perm: int, counter: int) -> None:
        """mqadmin changes TopicTest at one of them."""
        self.register(name, topics=(Topic("TopicTest", 4, perm),), counter=counter)


class Given(Struct, frozen=True):
    """What happened to the captured server at time `t` (s) outside the capture."""

    t: float
    happen: Callable[[Replay], None]


GIVEN = {
    "ns-5.5.0_acting-master-compatible": [
        Given(105, lambda replay: replay.kill(1)),
        Given(230, lambda replay: replay.register_again(1, over=10)),
    ],
    "ns-5.5.0_acting-master-heartbeats": [
        Given(165, lambda replay: replay.kill(1)),
        Given(310, lambda replay: replay.register_again(1, over=10)),
    ],
    "ns-5.5.0_both-binary": [Given(0, Replay.put_order_configuration)],
    "ns-5.5.0_mqadmin": [
        Given(60, Replay.start_brokers),
        Given(105, lambda replay: replay.set_perm("broker-a", 4, counter=2)),
        Given(105, lambda replay: replay.set_perm("broker-b", 4, counter=2)),
        Given(115, lambda replay: replay.set_perm("broker-a", 6, counter=3)),
        Given(125, lambda replay: replay.set_perm("broker-b", 6, counter=3)),
        Given(400, lambda replay: replay.register("broker-a", counter=4)),
    ],
}
"""Killed and restarted processes, exchanges that were thinned out as repetitions, brokers behind other ports."""
SETTINGS = {
    "ns-5.5.0_acting-master-compatible": {"supportActingMaster": "true", "notifyMinBrokerIdChanged": "true"},
    "ns-5.5.0_acting-master-heartbeats": {"supportActingMaster": "true", "notifyMinBrokerIdChanged": "true"},
    "ns-5.5.0_registration-variants": {"orderMessageEnable": "true"},
    "ns-5.5.0_mqadmin": {"orderMessageEnable": "false"},
}
"""The captured servers' options; those that a capture changes itself are put back with them."""


@pytest.mark.parametrize(
    "capture", [pytest.param(path, id=path.stem) for path in CAPTURES if "pushes" not in path.stem]
)
def test_a_capture_replayed(ns: Scene, capture: Path) -> None:
    replay = Replay(ns, capture)
    given = list(GIVEN.get(capture.stem, ()))
    with ns.settings(**SETTINGS.get(capture.stem, {})):
        for exchange in replay.exchanges:
            while given and given[0].t < exchange.t:
                given.pop(0).happen(replay)
            replay.play(exchange)
    assert not given
