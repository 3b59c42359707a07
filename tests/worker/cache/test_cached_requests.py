"""Cached requests: the same reply as a handler makes, and only to requests that ask the same."""

import struct

import pytest
from msgspec.structs import replace

from registry.plans import ScriptItem
from registry.registration.renewals import Renewal
from rocketmq_remoting.command import Command, decode, encode
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, SerializeType
from testbed.transports import TRANSPORTS
from tests.worker.cache.caches import Routes, requests_of
from worker.cache.cached_requests import CHECKS_MOST, COST, FRAME_MOST, CachedRequests
from worker.cache.routes import RouteCache
from worker.cache.views import PLAIN_LEGACY
from worker.counters import Counters
from worker.reply import Depends, Reply

KINDS = [SerializeType.JSON, SerializeType.ROCKETMQ]
MOST_BYTES = 1 << 20
ROUTE = Reply(body=b"route")


@pytest.fixture(params=TRANSPORTS, autouse=True)
def scanned_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled way, and Python's own."""
    if request.param:
        from worker.transport import epoll

        monkeypatch.setattr(CachedRequests, "answers", epoll.answers)


class Keeper:
    """A source of answers that are kept or not."""

    def __init__(self) -> None:
        self.generation = 0
        self.keeps = True
        self.requests = requests_of(lambda _: self.keeps)


def request(
    opaque: int | None = 7,
    kind: SerializeType = SerializeType.JSON,
    topic: str = "T",
    body: bytes = b"",
    flag: int = 0,
) -> Command:
    return Command(904, opaque, flag, 399, 0, None, {"brokerName": topic}, body, kind)


def cached_of(command: Command, answer: Reply = ROUTE) -> CachedRequests:
    keeper = Keeper()
    assert keeper.requests.keep(encode(command), command, answer, keeper)
    return keeper.requests


def answered(requests: CachedRequests, data: bytes, now: float = 0.0) -> list[Command]:
    pieces, length, checks = requests.answers(data, now, MOST_BYTES)
    assert not checks
    commands, whole = [], b"".join(pieces)
    while whole:
        end = 4 + struct.unpack_from(">i", whole)[0]
        commands.append(decode(whole[4:end]))
        whole = whole[end:]
    assert bool(length) == bool(commands)
    return commands


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("opaque", [0, 7, 10, 123456789])
@pytest.mark.parametrize("body", [b"", b'body,"opaque":1,'], ids=["bare", "with a body"])
@pytest.mark.parametrize(
    "answer", [Reply(body=b"route"), Reply(ext={"changed": "false"})], ids=["route", "ext"]
)
def test_the_answer_is_that_of_the_ordinary_way(
    kind: SerializeType, opaque: int, body: bytes, answer: Reply
) -> None:
    requests = cached_of(request(7, kind, body=body), answer)
    asked = request(opaque, kind, body=body)
    (found,) = answered(requests, encode(asked))
    assert found == decode(encode(asked.reply(0, ext=answer.ext, body=answer.body))[4:])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_all_whole_cached_requests_at_the_start_are_answered(kind: SerializeType) -> None:
    requests = cached_of(request(1, kind))
    three = b"".join(encode(request(opaque, kind)) for opaque in (1, 22, 333))
    assert [one.opaque for one in answered(requests, three)] == [1, 22, 333]
    for cut in range(len(three)):
        whole = cut * 3 // len(three) if kind else None
        replies = answered(requests, three[:cut])
        assert [one.opaque for one in replies] == [1, 22, 333][: len(replies)]
        assert whole is None or len(replies) == whole
    stranger = encode(request(5, kind, topic="U"))
    assert [one.opaque for one in answered(requests, three + stranger + three)] == [1, 22, 333]
    assert answered(requests, stranger + three) == []


def test_no_more_bytes_of_answers_than_asked_for() -> None:
    requests = cached_of(request(kind=SerializeType.ROCKETMQ), Reply(body=bytes(1000)))
    ten = encode(request(kind=SerializeType.ROCKETMQ)) * 10
    assert requests.answers(ten, 0.0, 2500)[1] == 3 * len(ten) // 10


@pytest.mark.parametrize(
    "changed",
    [
        request(7, topic="U"),
        request(7, body=b"x"),
        request(7, flag=4),
        request(-7),
        request(2**31 - 1),
        request(None),
        Command(906, 7, 0, 399, 0, None, {"brokerName": "T"}),
        Command(904, 7, 0, 398, 0, None, {"brokerName": "T"}),
        request(7, SerializeType.ROCKETMQ),
    ],
    ids=["topic", "body", "flag", "negative", "greatest", "no opaque", "code", "version", "kind"],
)
def test_another_request_is_not_found(changed: Command) -> None:
    assert answered(cached_of(request(7)), encode(changed)) == []


@pytest.mark.parametrize("digits", [b"007", b"+7", b"7.0", b"", b" 7", b'"7"', b"7\n", b"1234567890123"])
def test_an_opaque_that_is_no_plain_number_is_not_found(digits: bytes) -> None:
    header = encode(request(7))[8:].replace(b'"opaque":7', b'"opaque":' + digits)
    frame = struct.pack(">iI", 4 + len(header), len(header)) + header
    assert answered(cached_of(request(7)), frame) == []


def test_the_border_between_header_and_body_counts() -> None:
    command = request(7, body=b"xy")
    frame = encode(command)
    length, header = struct.unpack_from(">iI", frame)
    moved = struct.pack(">iI", length, header + 1) + frame[8:]
    assert answered(cached_of(command), frame)
    assert answered(cached_of(command), moved) == []


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":105,"extFields":{"topic":"T"},"opaque":1,"flag":0,"opaque":7,"language":"JAVA","version":399}',
        b'{"code":105,"extFields":{"topic":"T","opaque":7,"x":"y"},"flag":0,"language":"JAVA","version":399}',
    ],
    ids=["twice", "elsewhere"],
)
def test_a_number_that_is_not_the_opaque_is_not_taken_for_it(header: bytes) -> None:
    frame = struct.pack(">iI", 4 + len(header), len(header)) + header
    keeper = Keeper()
    requests = keeper.requests
    assert requests.keep(frame, decode(frame[4:]), Reply(), keeper) is None


def test_what_is_not_cached() -> None:
    keeper = Keeper()
    requests = keeper.requests
    oneway, long = request(flag=ONEWAY_FLAG), request(topic="T" * FRAME_MOST)
    assert requests.keep(encode(oneway), oneway, Reply(), keeper) is None
    assert requests.keep(encode(long), long, Reply(), keeper) is None
    assert requests.keep(encode(request()), request(), Reply(1, "no"), keeper) is None
    assert not len(requests)


def test_a_generation_that_moves_asks_the_source_again() -> None:
    source, asked = Keeper(), encode(request())
    requests = source.requests
    requests.keep(asked, request(), Reply(), source)
    source.generation += 1
    assert answered(requests, asked)
    source.generation, source.keeps = 2, False
    assert not answered(requests, asked)
    source.keeps = True
    assert not answered(requests, asked)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_heartbeat_is_checked_until_its_stamp_holds(kind: SerializeType) -> None:
    keeper, renewal = (
        Keeper(),
        Renewal(ScriptItem("heartbeat", (), (), ("m",)), ["renewed", "120000", ""], 0.12),
    )
    heartbeat, kept = request(1, kind), encode(request(1, kind))
    cached = keeper.requests.keep(kept, heartbeat, Reply(renewal=renewal), keeper)
    assert cached
    three = b"".join(encode(request(opaque, kind)) for opaque in (1, 22, 333))
    pieces, length, checks = keeper.requests.answers(three, 10.0, MOST_BYTES)
    assert (b"".join(pieces), length) == (b"", len(three))
    assert b"".join(one.frame for one in checks) == three
    for opaque, one in zip((1, 22, 333), checks, strict=True):
        answer = b"".join(one.cached.reply_to(one.opaque))
        assert decode(answer[4:]) == decode(encode(request(opaque, kind).reply(0))[4:])
    cached.until = 10.12
    assert len(answered(keeper.requests, three, now=10.1)) == 3
    assert len(keeper.requests.answers(three, 10.13, MOST_BYTES)[2]) == 3
    keeper.generation += 1
    assert len(keeper.requests.answers(three, 10.1, MOST_BYTES)[2]) == 3


def test_no_more_checks_at_once_than_a_read_may_have() -> None:
    keeper, renewal = (
        Keeper(),
        Renewal(ScriptItem("heartbeat", (), (), ("m",)), ["renewed", "120000", ""], 0.12),
    )
    keeper.requests.keep(encode(request()), request(), Reply(renewal=renewal), keeper)
    _, length, checks = keeper.requests.answers(encode(request()) * (CHECKS_MOST + 5), 0.0, MOST_BYTES)
    assert (len(checks), length) == (CHECKS_MOST, CHECKS_MOST * len(encode(request())))


def test_what_is_dropped_is_not_found() -> None:
    keeper, command = Keeper(), request()
    requests = keeper.requests
    cached = requests.keep(encode(command), command, Reply(), keeper)
    assert cached
    requests.drop(cached)
    requests.drop(cached)
    assert not answered(requests, encode(command))


def test_their_bytes_are_bounded_and_what_is_used_stays() -> None:
    keeper = Keeper()
    keeper.requests = requests = CachedRequests(20 * COST, routes := Routes(lambda _: True), Counters())
    first = request(topic="first", kind=SerializeType.ROCKETMQ)
    requests.keep(encode(first), first, Reply(), keeper)
    for number in range(30):
        command = request(topic=f"T{number}", kind=SerializeType.ROCKETMQ)
        requests.keep(encode(command), command, Reply(), keeper)
        assert answered(requests, encode(first))
        assert requests.replies.size <= 20 * COST
    assert [one.request.endswith(b"T0") for one in routes.evictions][:2] == [True, False]
    assert len(requests) + len(routes.evictions) == 31


def test_a_heartbeat_that_made_way_is_cached_again() -> None:
    keeper = Keeper()
    keeper.requests = requests = CachedRequests(20 * COST, Routes(lambda _: True), Counters())
    for _ in range(2):
        for number in range(30):
            renewal = Renewal(
                ScriptItem("heartbeat", (), (), (f"m{number}",)), ["renewed", "120000", ""], 0.12
            )
            command = request(topic=f"m{number}")
            assert requests.keep(encode(command), command, Reply(renewal=renewal), keeper)
            assert requests.answers(encode(command), 0.0, MOST_BYTES)[2]
    assert len(requests) == len(requests._heartbeats) < 20


def test_of_each_kind_of_heartbeat_of_a_member_one_is_cached() -> None:
    """Brokers ask by their data version (322), and most versions never come again."""
    keeper = Keeper()
    for member in ("m", "n"):
        renewal = Renewal(ScriptItem("heartbeat", (), (), (member,)), ["renewed", "120000", ""], 0.12)
        for version in range(10):
            command = request(topic=f"{member}{version}")
            keeper.requests.keep(encode(command), command, Reply(renewal=renewal), keeper)
            assert keeper.requests.answers(encode(command), 0.0, MOST_BYTES)[2]
    assert len(keeper.requests) == 2
    command = replace(request(topic="m"), code=106)
    renewal = Renewal(ScriptItem("heartbeat", (), (), ("m",)), ["renewed", "120000", ""], 0.12)
    cached = keeper.requests.keep(encode(command), command, Reply(renewal=renewal), keeper)
    assert cached
    assert len(keeper.requests) == 3
    keeper.requests.drop(cached)
    keeper.requests.keep(encode(command), command, Reply(renewal=renewal), keeper)
    assert len(keeper.requests) == 3


def test_a_hit_keeps_its_route_from_eviction() -> None:
    """The route of a repeated request is found by the request alone, and is in use all the same."""
    routes = RouteCache(20_000, Counters())

    def lookup(topic: str) -> Command:
        return Command(105, 7, ext={"topic": topic})

    def keep(topic: str) -> None:
        key = (topic, PLAIN_LEGACY)
        routes.end(routes.begin(key), Reply(body=bytes(1_000), depends=Depends(frozenset({"a"}))))
        routes.keep_request(key, encode(lookup(topic)), lookup(topic))

    keep("hot")
    for number in range(50):
        assert len(answered(routes.requests, encode(lookup("hot")))) == 1, number
        keep(f"T{number}")
    assert not answered(routes.requests, encode(lookup("T0")))
