"""The compiled way finds in any bytes what Python's own finds."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from registry.plans import ScriptItem
from registry.renewals import Again
from remoting.command import Command, encode
from remoting.remoting_command import SerializeType
from tests.harness.transports import compiled
from worker.answer import Answer
from worker.counters import Counters
from worker.known_frames import KnownFrames

KINDS = [SerializeType.JSON, SerializeType.ROCKETMQ]
OPAQUES = st.sampled_from([0, 1, 9, 10, 255, 99_999_999, 999_999_999, 1_000_000_000, 2**31 - 1, -1])


def request(opaque: int, kind: SerializeType, topic: str) -> Command:
    return Command(105, opaque, 0, 399, 0, None, {"topic": topic}, b'"opaque":1,', kind)


def all_known() -> tuple[KnownFrames, Counters]:
    """Routes, one of them no longer true, and a beat that has to be asked for."""
    counters = Counters()
    frames = KnownFrames(lambda known: known.answer.body != b"untrue", counters)
    beat = Answer(again=Again(ScriptItem("beat", (), (), ("m",)), ["renewed", "120000", ""]))
    answers = {
        "T": Answer(body=b"route"),
        "U": Answer(body=b"untrue"),
        "B": beat,
        "E": Answer(ext={"a": "b"}),
    }
    for kind in KINDS:
        for topic, answer in answers.items():
            command = request(7, kind, topic)
            source = type("Source", (), {"generation": 0})()
            assert frames.keep(encode(command), command, answer, source)
            source.generation = int(topic == "U")
    return frames, counters


@st.composite
def received(draw: st.DrawFn) -> bytes:
    """Requests, known and others, whole and cut, some bytes of them changed."""
    frames = st.builds(
        lambda opaque, kind, topic: encode(request(opaque, kind, topic)),
        *(OPAQUES, st.sampled_from(KINDS), st.sampled_from(["T", "T", "U", "B", "E", "S"])),
    )
    data = bytearray(b"".join(draw(st.lists(frames, max_size=6))))
    changes = st.tuples(st.integers(0, max(0, len(data) - 1)), st.sampled_from(b'\x00\x01\x7f\xff09",:} '))
    for at, byte in draw(st.lists(changes, max_size=3)) if data else ():
        data[at] = byte
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@compiled
@settings(derandomize=True, max_examples=1500, deadline=None)
@given(received(), st.sampled_from([0, 1, 5, 10, 1 << 20]))
def test_both_ways_find_the_same(data: bytes, most: int) -> None:
    from worker import epoll

    def found(answers: Any) -> tuple[object, ...]:
        frames, counters = all_known()
        pieces, length, due = answers(frames, data, 0.0, most)
        beats = [(one.known.name, one.opaque, one.frame) for one in due]
        return b"".join(pieces), length, beats, counters.known_frames, sorted(frames.known)

    assert found(epoll.answers) == found(KnownFrames.answers)
