"""The compiled way finds in any bytes what Python's own finds."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from registry.plans import ScriptItem
from registry.registration.renewals import Renewal
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import SerializeType
from testbed.transports import compiled
from tests.worker.cache.caches import requests_of
from worker.cache.cached_requests import CachedRequests
from worker.counters import Counters
from worker.reply import Reply

KINDS = [SerializeType.JSON, SerializeType.ROCKETMQ]
OPAQUES = st.sampled_from([0, 1, 9, 10, 255, 99_999_999, 999_999_999, 1_000_000_000, 2**31 - 1, -1])


def request(opaque: int, kind: SerializeType, topic: str) -> Command:
    return Command(105, opaque, 0, 399, 0, None, {"topic": topic}, b'"opaque":1,', kind)


def all_cached() -> tuple[CachedRequests, Counters]:
    """Routes, one of them no longer true, and a heartbeat that has to be checked."""
    counters = Counters()
    frames = requests_of(lambda cached: cached.reply.body != b"untrue", counters)
    heartbeat = Reply(
        renewal=Renewal(ScriptItem("heartbeat", (), (), ("m",)), ["renewed", "120000", ""], 0.12)
    )
    answers = {
        "T": Reply(body=b"route"),
        "U": Reply(body=b"untrue"),
        "B": heartbeat,
        "E": Reply(ext={"a": "b"}),
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
    """Requests, cached and others, whole and cut, some bytes of them changed."""
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
    from worker.transport import epoll

    def found(answers: Any) -> tuple[object, ...]:
        frames, counters = all_cached()
        pieces, length, due = answers(frames, data, 0.0, most)
        checks = [(one.cached.request, one.opaque, one.frame) for one in due]
        return b"".join(pieces), length, checks, counters.cached_requests, sorted(frames.replies.entries)

    assert found(epoll.answers) == found(CachedRequests.answers)
