"""Requests found by their shapes: whatever the bytes, the reply is that of decoding them; what is used stays."""

import random
from importlib.util import find_spec
from itertools import product
from struct import pack

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from registry.options.catalogue import Options
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import SerializeType
from tests.worker.cache.lookups import Lookups, Scan, family, json_frame
from worker.cache import request_shapes
from worker.cache.cached_requests import CachedRequests
from worker.cache.request_shapes import COST
from worker.cache.views import PLAIN_LEGACY

KINDS = [SerializeType.JSON, SerializeType.ROCKETMQ]


def scans() -> list[Scan]:
    """Python's own way and, where it is built, the compiled one."""
    if find_spec("worker.transport.epoll") is None:
        return [CachedRequests.answers]
    from worker.transport import epoll

    return [CachedRequests.answers, epoll.answers]


def lookup(
    topic: str, kind: SerializeType = SerializeType.JSON, opaque: int = 7, version: int = 0, **ext: str
) -> bytes:
    return encode(Command(105, opaque, 0, version, 0, None, {"topic": topic, **ext}, b"", kind))


def cluster_info(kind: SerializeType, version: int) -> bytes:
    return encode(Command(106, 7, 0, version, 0, None, None, b"", kind))


@settings(derandomize=True, max_examples=2000, deadline=None)
@given(st.integers(0, 1 << 64))
def test_what_is_answered_is_what_decoding_answers(seed: int) -> None:
    dice, lookups = random.Random(seed), Lookups(*scans())
    frames = [frame for _ in range(2) for frame in family(dice)]
    for frame in frames:
        lookups.check(frame)
        lookups.decode(frame)
    for frame in frames:
        lookups.check(frame)
    lookups.check(b"".join(frames))


def test_enough_of_those_frames_are_answered() -> None:
    dice, lookups = random.Random(1), Lookups(*scans())
    answered = 0
    for _ in range(300):
        for frame in family(dice):
            lookups.decode(frame)
            answered += lookups.check(frame) > 0
    assert answered > 100


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (b'"topic":"T","topic":"T"', b'"topic":"TA","topic":"T"'),
        (b'"topic":"T"},"extFields":{"topic":"T"', b'"topic":"TA"},"extFields":{"topic":"T"'),
        (b'"a\\"topic":"T","topic":"T"', b'"a\\"topic":"TA","topic":"T"'),
        (b'"topic":"T"},"opaque":7,"x":{"a":"b"', b'"topic":"T"},"opaque":8,"x":{"a":"b"'),
        (b'"topic":"T"},"x":{"opaque":7,"a":"b"', b'"topic":"T"},"x":{"opaque":8,"a":"b"'),
        (b'"topic":"T"', b'"topic":"\\u0054"'),
        (b'"topic":"T"', b'"topic":"T","acceptStandardJsonOnly":"true"'),
        (b'"topic":"T"', b'"topic":7'),
    ],
    ids=[
        "twice",
        "in two ext fields",
        "in a key",
        "two opaques",
        "opaque within",
        "escaped",
        "view",
        "no text",
    ],
)
def test_what_decodes_to_something_else_is_not_taken_for_it(known: bytes, asked: bytes) -> None:
    lookups = Lookups(*scans())
    frames = [
        json_frame(b'{"code":105,"extFields":{%b},"flag":0,"opaque":7,"version":0}' % it)
        for it in (known, asked)
    ]
    lookups.decode(frames[0])
    assert not lookups.check(frames[1])
    assert not lookups.check(frames[1] + frames[0])


def test_a_topic_that_is_spelt_otherwise_is_not_kept_though_its_shape_is_known() -> None:
    """One decodes to the other, but a reply is kept under plain topics only."""
    lookups = Lookups(*scans())
    plain, spelt = (
        json_frame(b'{"code":105,"extFields":{"topic":"%b"},"flag":0,"opaque":7,"version":0}' % topic)
        for topic in (b"T", rb"\u0054")
    )
    for frame in (plain, spelt):
        lookups.decode(frame)
    assert lookups.check(plain)
    assert not lookups.check(spelt)
    assert len(lookups.cache.requests) == 1


def test_a_header_that_is_none_is_not_taken_for_the_name_of_a_reply() -> None:
    """A view with this zone, and an opaque put in where it is cut out."""
    lookups = Lookups(*scans())
    zone = rb'"topic":"T","__ZONE_MODE":"true","__ZONE_NAME":"\"opaque\":,"'
    lookups.decode(json_frame(b'{"code":105,"extFields":{%b},"flag":0,"opaque":7,"version":0}' % zone))
    for kind, view in product((0, 1), range(1, 5)):
        head, body = bytes((0xFF, kind, view)) + b'"opaque":77', b",\xffT"
        frame = pack(">II", 4 + len(head) + len(body), len(head)) + head + body
        assert not lookups.check(frame)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("strange", [{"a": "b"}, {"acceptStandardJsonOnly": "true"}], ids=str)
def test_requests_like_no_others_take_no_place_from_the_usual(
    kind: SerializeType, strange: dict[str, str]
) -> None:
    lookups = Lookups(*scans())
    for number in range(20):
        strangely = {"topic": "T", "x": str(number), **strange}
        lookups.decode(encode(Command(105, 7, ext=strangely, serialize_type=kind)))
    usual = lookup("T", kind)
    lookups.decode(usual)
    assert lookups.check(usual)
    assert len(lookups.cache.requests) <= 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_request_of_each_release_is_decoded_whatever_topic_it_asks_for(kind: SerializeType) -> None:
    lookups = Lookups(*scans())
    lookups.decode(lookup("TA", kind))
    for release in range(100):
        lookups.decode(lookup("T", kind, version=release, release=f"{release}"))
    asked = [
        lookup("TA", kind, opaque, release, release=f"{release}")
        for release in range(100)
        for opaque in (3, 44)
    ]
    assert all(lookups.check(frame) for frame in asked)
    assert lookups.check(b"".join(asked)) == sum(map(len, asked))
    assert len(lookups.cache.requests) == 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_signature_is_of_its_topic_alone(kind: SerializeType) -> None:
    lookups = Lookups(*scans())
    for topic in ("T", "TA", "U", ""):
        lookups.decode(lookup(topic, kind))
    for topic in ("T", "TA"):
        lookups.decode(lookup(topic, kind, Signature=f"of {topic}"), proven=True)
    asked = [
        lookup(topic, kind, opaque, Signature=f"of {topic}") for topic in ("T", "TA") for opaque in (8, 9)
    ]
    assert lookups.check(b"".join(asked)) == sum(map(len, asked))
    for topic in ("TA", "U", "", "\xff", "of T"):
        other = lookup(topic, kind, Signature="of T")
        assert not lookups.check(other)
        assert lookups.check(asked[0] + other) == len(asked[0])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_shapes_are_bounded_and_what_is_used_stays(
    kind: SerializeType, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1 << 19
    monkeypatch.setattr(request_shapes, "SHAPES_BYTES", limit)
    lookups = Lookups(*scans())
    busy, idle = lookup("T", kind), lookup("T", kind, idle="yes")
    for frame in (busy, idle):
        lookups.decode(frame)
    shapes = lookups.cache.requests.shapes
    for number in range(limit // COST):
        lookups.decode(lookup("T", kind, number=f"{number}"))
        assert lookups.check(busy), number
    assert shapes.size <= limit
    assert not lookups.check(idle)
    lookups.decode(idle)
    assert lookups.check(idle)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_cluster_info_is_one_reply_to_all_releases(kind: SerializeType) -> None:
    lookups = Lookups(*scans())
    frames = [cluster_info(kind, version) for version in range(20)]
    for frame in frames:
        lookups.decode(frame)
    assert all(lookups.check(frame) for frame in frames)
    assert len(lookups.cache.requests) == 1
    lookups.cache.drop_brokers(["a"])
    assert not any(lookups.check(frame) for frame in frames)


def test_which_view_a_shape_asks_for_is_forgotten_with_the_settings() -> None:
    lookups, old = Lookups(*scans()), lookup("T")
    lookups.decode(old)
    lookups.options = Options(omit_v5_members=True)
    lookups.cache.drop_all()
    lookups.fill(("T", PLAIN_LEGACY))
    lookups.decode(lookup("T", SerializeType.ROCKETMQ))
    assert not lookups.check(old)
    lookups.decode(old)
    assert lookups.check(old)


def test_a_reply_goes_with_its_route() -> None:
    lookups, frame = Lookups(*scans()), lookup("T")
    lookups.decode(frame)
    lookups.cache.drop_topics(["T"])
    assert not len(lookups.cache.requests)
    assert not lookups.check(frame)
    lookups.fill(("T", PLAIN_LEGACY))
    lookups.decode(frame)
    assert lookups.check(frame)
