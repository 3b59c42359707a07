"""The compiled way finds in any bytes what Python's own finds."""

import hypothesis.strategies as st
from hypothesis import given, settings

from rocketmq_remoting.command import encode
from testbed.transports import compiled
from tests.worker.cache.both_ways import KINDS, LOOKUPS, BothWays, lookup, request
from worker.cache.cached_requests import CachedRequests

OPAQUES = st.sampled_from([0, 1, 9, 10, 255, 99_999_999, 999_999_999, 1_000_000_000, 2**31 - 1, -1])
BOTH_WAYS = BothWays()


FRAMES = st.builds(
    lambda opaque, kind, topic: encode(request(opaque, kind, topic)),
    *(OPAQUES, st.sampled_from(KINDS), st.sampled_from(["T", "T", "U", "B", "E", "S"])),
)
LOOKED_UP = st.builds(
    lambda opaque, kind, topic, fields: encode(lookup(opaque, kind, topic, fields)),
    *(OPAQUES, st.sampled_from(KINDS), st.sampled_from(["T", "S", "not cached"])),
    st.sampled_from([*LOOKUPS.values(), {"other": "field"}]),
)
SENT = st.lists(st.one_of(FRAMES, LOOKED_UP), max_size=6)
BYTES = st.sampled_from(b'\x00\x01\x7f\xff09",:} ')
"""Made once: Hypothesis checks what is made for an example again, which took two fifths of the time."""


@st.composite
def received(draw: st.DrawFn) -> bytes:
    """Requests, cached and others, whole and cut, some bytes of them changed."""
    data = bytearray(b"".join(draw(SENT)))
    changes = st.tuples(st.integers(0, max(0, len(data) - 1)), BYTES)
    for at, byte in draw(st.lists(changes, max_size=3)) if data else ():
        data[at] = byte
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@compiled
@settings(derandomize=True, max_examples=1500, deadline=None)
@given(received(), st.sampled_from([0, 1, 5, 10, 1 << 20]), st.sampled_from([0, 1, 25]))
def test_both_ways_find_the_same(data: bytes, most: int, first: int) -> None:
    from worker.transport import epoll

    compiled_way = BOTH_WAYS.found(epoll.answers, data, most, first)
    assert compiled_way == BOTH_WAYS.found(CachedRequests.answers, data, most, first)
    assert compiled_way == BOTH_WAYS.found(CachedRequests.answers, data, most)
