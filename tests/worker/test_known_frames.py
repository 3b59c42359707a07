"""Known frames: the same answer as the ordinary way gives, and only to frames that ask the same."""

import struct

import pytest
from msgspec.structs import replace

from registry.plans import ScriptItem
from registry.renewals import Again
from remoting.command import Command, decode, encode
from remoting.remoting_command import ONEWAY_FLAG, SerializeType
from tests.harness.transports import TRANSPORTS
from worker.answer import Answer
from worker.counters import Counters
from worker.known_frames import DUE_MOST, FRAME_MOST, MOST, KnownFrames

KINDS = [SerializeType.JSON, SerializeType.ROCKETMQ]
MOST_BYTES = 1 << 20
ROUTE = Answer(body=b"route")


@pytest.fixture(params=TRANSPORTS, autouse=True)
def scanned_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled way, and Python's own."""
    if request.param:
        from worker import epoll

        monkeypatch.setattr(KnownFrames, "answers", epoll.answers)


class Keeper:
    """A source of answers that are kept or not."""

    def __init__(self) -> None:
        self.generation = 0
        self.keeps = True
        self.frames = KnownFrames(lambda _: self.keeps, Counters())


def request(
    opaque: int | None = 7,
    kind: SerializeType = SerializeType.JSON,
    topic: str = "T",
    body: bytes = b"",
    flag: int = 0,
) -> Command:
    return Command(105, opaque, flag, 399, 0, None, {"topic": topic}, body, kind)


def known(command: Command, answer: Answer = ROUTE) -> KnownFrames:
    keeper = Keeper()
    assert keeper.frames.keep(encode(command), command, answer, keeper)
    return keeper.frames


def answered(frames: KnownFrames, data: bytes, now: float = 0.0) -> list[Command]:
    pieces, length, due = frames.answers(data, now, MOST_BYTES)
    assert not due
    found, whole = [], b"".join(pieces)
    while whole:
        end = 4 + struct.unpack_from(">i", whole)[0]
        found.append(decode(whole[4:end]))
        whole = whole[end:]
    assert bool(length) == bool(found)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("opaque", [0, 7, 10, 123456789])
@pytest.mark.parametrize("body", [b"", b'body,"opaque":1,'], ids=["bare", "with a body"])
@pytest.mark.parametrize(
    "answer", [Answer(body=b"route"), Answer(ext={"changed": "false"})], ids=["route", "ext"]
)
def test_the_answer_is_that_of_the_ordinary_way(
    kind: SerializeType, opaque: int, body: bytes, answer: Answer
) -> None:
    frames = known(request(7, kind, body=body), answer)
    asked = request(opaque, kind, body=body)
    (found,) = answered(frames, encode(asked))
    assert found == decode(encode(asked.reply(0, ext=answer.ext, body=answer.body))[4:])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_all_whole_known_frames_at_the_start_are_answered(kind: SerializeType) -> None:
    frames = known(request(1, kind))
    three = b"".join(encode(request(opaque, kind)) for opaque in (1, 22, 333))
    assert [one.opaque for one in answered(frames, three)] == [1, 22, 333]
    for cut in range(len(three)):
        whole = cut * 3 // len(three) if kind else None
        found = answered(frames, three[:cut])
        assert [one.opaque for one in found] == [1, 22, 333][: len(found)]
        assert whole is None or len(found) == whole
    stranger = encode(request(5, kind, topic="U"))
    assert [one.opaque for one in answered(frames, three + stranger + three)] == [1, 22, 333]
    assert answered(frames, stranger + three) == []


def test_no_more_bytes_of_answers_than_asked_for() -> None:
    frames = known(request(kind=SerializeType.ROCKETMQ), Answer(body=bytes(1000)))
    ten = encode(request(kind=SerializeType.ROCKETMQ)) * 10
    assert frames.answers(ten, 0.0, 2500)[1] == 3 * len(ten) // 10


@pytest.mark.parametrize(
    "changed",
    [
        request(7, topic="U"),
        request(7, body=b"x"),
        request(7, flag=4),
        request(-7),
        request(2**31 - 1),
        request(None),
        Command(106, 7, 0, 399, 0, None, {"topic": "T"}),
        Command(105, 7, 0, 398, 0, None, {"topic": "T"}),
        request(7, SerializeType.ROCKETMQ),
    ],
    ids=["topic", "body", "flag", "negative", "greatest", "no opaque", "code", "version", "kind"],
)
def test_another_request_is_not_known(changed: Command) -> None:
    assert answered(known(request(7)), encode(changed)) == []


@pytest.mark.parametrize("digits", [b"007", b"+7", b"7.0", b"", b" 7", b'"7"', b"7\n", b"1234567890123"])
def test_an_opaque_that_is_no_plain_number_is_not_known(digits: bytes) -> None:
    header = encode(request(7))[8:].replace(b'"opaque":7', b'"opaque":' + digits)
    frame = struct.pack(">iI", 4 + len(header), len(header)) + header
    assert answered(known(request(7)), frame) == []


def test_the_border_between_header_and_body_counts() -> None:
    command = request(7, body=b"xy")
    frame = encode(command)
    length, header = struct.unpack_from(">iI", frame)
    moved = struct.pack(">iI", length, header + 1) + frame[8:]
    assert answered(known(command), frame)
    assert answered(known(command), moved) == []


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
    frames = keeper.frames
    assert frames.keep(frame, decode(frame[4:]), Answer(), keeper) is None


def test_what_is_not_remembered() -> None:
    keeper = Keeper()
    frames = keeper.frames
    oneway, long = request(flag=ONEWAY_FLAG), request(topic="T" * FRAME_MOST)
    assert frames.keep(encode(oneway), oneway, Answer(), keeper) is None
    assert frames.keep(encode(long), long, Answer(), keeper) is None
    assert frames.keep(encode(request()), request(), Answer(1, "no"), keeper) is None
    assert not len(frames)


def test_a_generation_that_moves_asks_the_source_again() -> None:
    source, asked = Keeper(), encode(request())
    frames = source.frames
    frames.keep(asked, request(), Answer(), source)
    source.generation += 1
    assert answered(frames, asked)
    source.generation, source.keeps = 2, False
    assert not answered(frames, asked)
    source.keeps = True
    assert not answered(frames, asked)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_beat_is_due_until_it_is_told_how_long_it_holds(kind: SerializeType) -> None:
    keeper, again = Keeper(), Again(ScriptItem("beat", (), (), ("m",)), ["renewed", "120000", ""])
    beat, kept = request(1, kind), encode(request(1, kind))
    known = keeper.frames.keep(kept, beat, Answer(again=again), keeper)
    assert known
    three = b"".join(encode(request(opaque, kind)) for opaque in (1, 22, 333))
    pieces, length, due = keeper.frames.answers(three, 10.0, MOST_BYTES)
    assert (b"".join(pieces), length) == (b"", len(three))
    assert b"".join(one.frame for one in due) == three
    for opaque, one in zip((1, 22, 333), due, strict=True):
        answer = b"".join(one.known.pieces(one.opaque))
        assert decode(answer[4:]) == decode(encode(request(opaque, kind).reply(0))[4:])
    known.until = 10.12
    assert len(answered(keeper.frames, three, now=10.1)) == 3
    assert len(keeper.frames.answers(three, 10.13, MOST_BYTES)[2]) == 3
    keeper.generation += 1
    assert len(keeper.frames.answers(three, 10.1, MOST_BYTES)[2]) == 3


def test_no_more_beats_at_once_than_a_turn_has() -> None:
    keeper, again = Keeper(), Again(ScriptItem("beat", (), (), ("m",)), ["renewed", "120000", ""])
    keeper.frames.keep(encode(request()), request(), Answer(again=again), keeper)
    _, length, due = keeper.frames.answers(encode(request()) * (DUE_MOST + 5), 0.0, MOST_BYTES)
    assert (len(due), length) == (DUE_MOST, DUE_MOST * len(encode(request())))


def test_what_is_forgotten_is_not_known() -> None:
    keeper, command = Keeper(), request()
    frames = keeper.frames
    known = frames.keep(encode(command), command, Answer(), keeper)
    assert known
    frames.forget(known)
    frames.forget(known)
    assert not answered(frames, encode(command))


def test_their_number_is_bounded() -> None:
    keeper = Keeper()
    frames = keeper.frames
    for number in range(MOST + 10):
        command = request(topic=f"T{number}", kind=SerializeType.ROCKETMQ)
        frames.keep(encode(command), command, Answer(), keeper)
    assert len(frames) <= MOST


def test_of_each_kind_of_beat_of_a_member_one_is_known() -> None:
    """Brokers ask by their data version (322), and most versions never come again."""
    keeper = Keeper()
    for member in ("m", "n"):
        again = Again(ScriptItem("beat", (), (), (member,)), ["renewed", "120000", ""])
        for version in range(10):
            command = request(topic=f"{member}{version}")
            keeper.frames.keep(encode(command), command, Answer(again=again), keeper)
            assert keeper.frames.answers(encode(command), 0.0, MOST_BYTES)[2]
    assert len(keeper.frames) == 2
    command = replace(request(topic="m"), code=106)
    again = Again(ScriptItem("beat", (), (), ("m",)), ["renewed", "120000", ""])
    known = keeper.frames.keep(encode(command), command, Answer(again=again), keeper)
    assert known
    assert len(keeper.frames) == 3
    keeper.frames.forget(known)
    keeper.frames.keep(encode(command), command, Answer(again=again), keeper)
    assert len(keeper.frames) == 3
