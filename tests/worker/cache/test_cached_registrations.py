"""Cached registrations: found whatever is new each time, and only if nothing else is new."""

import struct
from collections.abc import Callable
from sys import getsizeof

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from registry.options.catalogue import Options
from registry.plans import ScriptItem
from registry.registration.renewals import Renewal, Renewals
from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode, encode
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.registration import body_crc32
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, SerializeType
from tests.worker import registrations as said
from tests.worker.cache.both_ways import Answering
from tests.worker.cache.caches import requests_of
from tests.worker.registrations import BINARY, JSON, KINDS, body_of, registration
from worker.cache import cached_registrations
from worker.cache.cached_registrations import FRAME_LONGEST, WAITING_MOST, CachedRegistrations
from worker.cache.cached_requests import CachedRequests, RepeatCheck
from worker.counters import Counters
from worker.reply import Reply
from worker.transport.cached_answers import cached_answers

RENEWED = Reply(
    ext={"masterAddr": "127.0.0.1:1"},
    body=b'{"table":{}}',
    renewal=Renewal(
        ScriptItem("renew_registration", (), (), ("m",)), ["renewed", "120000", ["", ""], ["0"]], 0.12
    ),
)
OPTIONS = Options()
FIRST = body_of()


RENEWALS = Renewals(lambda: 0.0)


def unasked(*_: object) -> bool:
    raise AssertionError("no registration here is signed")


def empty(counters: Counters | None = None) -> CachedRegistrations:
    return CachedRegistrations(lambda: 1.0, counters or Counters(), unasked)


def keep(
    cached: CachedRegistrations, command: Command, answer: Reply = RENEWED, frame: bytes | None = None
) -> None:
    cached.keep(encode(command) if frame is None else frame, command, answer, RENEWALS, "1", OPTIONS)


def cached_of(
    command: Command, frame: bytes | None = None, counters: Counters | None = None
) -> CachedRegistrations:
    cached = empty(counters)
    keep(cached, command, frame=frame)
    assert len(cached) == 1
    return cached


def check(cached: CachedRegistrations, frame: bytes) -> RepeatCheck | None:
    """Of a frame that stands between others."""
    cached.set_connection("1", OPTIONS)
    found = cached.find(b"before" + frame + b"after", 6, 6 + len(frame))
    if found is None:
        return None
    reply, opaque, change = found
    return RepeatCheck(reply, opaque, frame, change)


ONES = {kind: cached_of(registration(FIRST, kind=kind)) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("opaque", [0, 8, 12345, 123456789])
@pytest.mark.parametrize("stamp", [*said.stamps_of_all_lengths()])
def test_the_answer_is_that_of_the_ordinary_way(kind: SerializeType, opaque: int, stamp: int) -> None:
    asked = registration(body_of(stamp), opaque, kind)
    repeat = check(ONES[kind], encode(asked))
    assert repeat
    answer = b"".join(repeat.cached.reply_to(repeat.opaque))
    assert answer == encode(asked.reply(0, ext=RENEWED.ext, body=RENEWED.body))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_body_without_the_stamp_is_found_as_its_signature_is_the_same(kind: SerializeType) -> None:
    bare = FIRST.replace(
        b'"mappingDataVersion":{"counter":1,"stateVersion":0,"timestamp":1700000000000},', b""
    )
    assert len(bare) < len(FIRST)
    assert check(ONES[kind], encode(registration(bare, kind=kind)))
    assert check(cached_of(registration(bare, kind=kind)), encode(registration(FIRST, kind=kind)))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(registration(body_of(2), bodyCrc32="123456789"), id="checksum"),
        pytest.param(registration(body_of(2), bodyCrc32="0"), id="no checksum"),
        pytest.param(
            registration(body_of(2), bodyCrc32=f"0{body_crc32(body_of(2))}"), id="a nought before it"
        ),
        pytest.param(registration(body_of(2, counter=2)), id="data version"),
        pytest.param(registration(body_of(2, topics=4)), id="one topic more"),
        pytest.param(registration(body_of(2, perm=4)), id="permission"),
        pytest.param(registration(body_of(2), brokerId="1"), id="id"),
        pytest.param(registration(body_of(2), brokerAddr="127.0.0.9:10913"), id="address"),
        pytest.param(registration(body_of(2), zone="z"), id="one field more"),
        pytest.param(registration(body_of(2), flag=ONEWAY_FLAG), id="one-way"),
        pytest.param(replace(registration(body_of(2)), version=400), id="version"),
        pytest.param(replace(registration(body_of(2)), code=104), id="code"),
        pytest.param(replace(registration(body_of(2)), remark="r"), id="remark"),
        pytest.param(registration(b"x\xda" + body_of(2)), id="compressed"),
        pytest.param(registration(body_of(2) + b" "), id="a blank after it"),
        pytest.param(
            registration(body_of(2).replace(b'"counter":2', b'"counter":"2"')), id="a stamp in quotes"
        ),
        pytest.param(registration(b""), id="no body"),
    ],
)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_another_registration_is_not_found(kind: SerializeType, changed: Command) -> None:
    assert check(ONES[kind], encode(replace(changed, serialize_type=kind))) is None
    assert check(ONES[kind], encode(registration(body_of(2), kind=kind)))


Edit = Callable[[bytes], bytes]
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 3), st.binary(max_size=3)),
    min_size=1,
    max_size=2,
)


@given(st.sampled_from(KINDS), st.integers(1, 5), edits, st.booleans(), st.integers(-2, 2))
def test_whatever_is_changed_is_either_seen_or_new_each_time(
    kind: SerializeType, stamp: int, changes: list[tuple[float, int, bytes]], repair: bool, shift: int
) -> None:
    asked = registration(body_of(stamp), kind=kind)
    header, body = encode(asked)[8 : -len(asked.body)], asked.body
    for place, removed, added in changes:
        whole = header + body
        at = int(place * len(whole))
        if at < len(header):
            header = header[:at] + added + header[at + removed :]
        else:
            at -= len(header)
            body = body[:at] + added + body[at + removed :]
            if repair and (number := str(body_crc32(body)).encode()):
                old = str(body_crc32(asked.body)).encode()
                header = header.replace(old, number) if len(old) == len(number) else header
    word = kind << 24 | max(len(header) + shift, 0)
    frame = struct.pack(">iI", 4 + len(header) + len(body), word) + header + body
    found = check(ONES[kind], frame)
    if found is None:
        return
    read, first = decode(frame[4:]), registration(FIRST, kind=kind)
    assert read.get("bodyCrc32") == str(body_crc32(read.body))
    assert split_signature(read.body) == split_signature(FIRST)
    ext = (read.ext or {}) | {"bodyCrc32": str(body_crc32(FIRST))}
    assert replace(read, opaque=7, ext=ext, body=FIRST) == first


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(registration(FIRST, flag=ONEWAY_FLAG), id="one-way"),
        pytest.param(replace(registration(body_of(topics=0)), ext={"bodyCrc32": "1"}), id="short"),
        pytest.param(registration(body_of(topics=2000)), id="long"),
        pytest.param(registration(b"x\xda" + FIRST), id="compressed"),
        pytest.param(registration(FIRST.replace(b":[]", b":null")), id="laid out otherwise"),
        pytest.param(replace(registration(FIRST), ext={"brokerName": "b"}), id="no checksum"),
        pytest.param(replace(registration(FIRST), ext={"bodyCrc32": ""}), id="an empty checksum"),
    ],
)
def test_what_is_not_cached(kind: SerializeType, command: Command) -> None:
    cached, asked = empty(), replace(command, serialize_type=kind)
    keep(cached, asked)
    assert not len(cached)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_of_two_stamps_only_the_first_may_be_new(kind: SerializeType) -> None:
    def body(*counters: int) -> bytes:
        stamps = b"".join(b'"mappingDataVersion":{"counter":%d},' % counter for counter in counters)
        one = FIRST[FIRST.index(b'"mappingDataVersion"') : FIRST.index(b'"topicConfigTable"')]
        return FIRST.replace(one, stamps)

    cached = cached_of(registration(body(1, 2), kind=kind))
    for counters, same in (((3, 2), True), ((1, 3), False), ((2,), False), ((1,), False), ((), False)):
        asked = registration(body(*counters), kind=kind)
        assert (split_signature(asked.body) == split_signature(body(1, 2))) == same
        assert (check(cached, encode(asked)) is not None) == same


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_long_one_is_found_as_long_as_its_stamp_holds(kind: SerializeType) -> None:
    cached, long = cached_of(registration(body_of(topics=200), kind=kind)), body_of(2, topics=200)
    assert len(long) > WAITING_MOST
    assert check(cached, encode(registration(long, kind=kind))) is None
    (entry,) = cached.replies.entries.values()
    entry.until = 1.1
    assert check(cached, encode(registration(long, kind=kind)))
    entry.until = 0.9
    assert check(cached, encode(registration(long, kind=kind))) is None


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_no_frame_is_kept_that_is_too_long_to_be_found(kind: SerializeType) -> None:
    """Its head goes ahead of its body, so it is not compared."""
    body = body_of(topics=1000)
    lacking = FRAME_LONGEST - len(encode(registration(body, kind=kind, zone="")))
    for over in (0, 1):
        cached, asked = (
            empty(),
            registration(body, kind=kind, zone="z" * (lacking + over)),
        )
        assert len(encode(asked)) == FRAME_LONGEST + over
        keep(cached, asked)
        assert len(cached) == 1 - over


@pytest.mark.parametrize("value", ["x" * 20_000, "\U0001f600" + "x" * 20_000], ids=["ascii", "wide"])
def test_fields_cost_what_they_take(value: str) -> None:
    """Of one with a key they are kept; a character outside of ASCII makes all of its text four times as long."""
    cached = empty()
    keep(cached, registration(FIRST, AccessKey="k", Signature=f"{'A' * 27}=", junk=value))
    assert len(cached) == 1
    assert cached.replies.size > getsizeof(value) + len(value)


def test_a_header_of_no_kind_is_not_found() -> None:
    frame = bytearray(encode(registration(body_of(2), kind=BINARY)))
    frame[4] = 2
    assert check(ONES[BINARY], bytes(frame)) is None


def test_headers_that_peers_do_not_write_are_not_cached() -> None:
    cached = empty()
    keep(cached, replace(registration(FIRST), opaque=None))
    keep(cached, replace(registration(FIRST, kind=BINARY), remark="r"))
    assert not len(cached)
    assert check(ONES[JSON], encode(replace(registration(FIRST), opaque=None))) is None


def test_other_replies_are_not_cached() -> None:
    cached = empty()
    keep(cached, registration(FIRST), Reply(event_id="1-1"))
    keep(cached, registration(FIRST), replace(RENEWED, body=bytes(WAITING_MOST + 1)))
    assert not len(cached)


@pytest.mark.parametrize(
    "name",
    [
        "\0\tbodyCrc32\0\0\0\n1234567890",
        '"bodyCrc32":"1234567890"',
        '"opaque":5,',
        '"bodyCrc32":"1"opaque":5,',
    ],
)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_number_in_another_field_is_not_taken_for_one_of_those(kind: SerializeType, name: str) -> None:
    asked = replace(
        registration(FIRST, kind=kind), ext={"brokerName": name} | said.ext_of(FIRST, brokerName=name)
    )
    cached = empty()
    keep(cached, asked)
    other = replace(asked, ext=(asked.ext or {}) | {"brokerName": name.replace("5", "6")})
    assert name == other.get("brokerName") or check(cached, encode(other)) is None


@pytest.mark.parametrize("more", ['"bodyCrc32":"7"', '"opaque":9'])
def test_a_member_that_comes_twice_in_json(more: str) -> None:
    frame = encode(registration(FIRST))
    header = frame[8 : -len(FIRST)]
    inside = header.replace(b'"extFields":{', b'"extFields":{%s,' % more.encode())
    at_end = header[:-1] + b",%s}" % more.encode()
    for ambiguous in (inside, at_end):
        whole = struct.pack(">iI", 4 + len(ambiguous) + len(FIRST), len(ambiguous)) + ambiguous + FIRST
        cached, command = empty(), decode(whole[4:])
        keep(cached, command, frame=whole)
        for opaque in (b'"opaque":8,', b'"opaque":9,'):
            repeat = check(cached, whole.replace(b'"opaque":7,', opaque))
            assert repeat is None or opaque == b'"opaque":%s,' % repeat.opaque


def test_a_header_in_the_other_encoding_does_not_pass_for_a_cached_one() -> None:
    for kind in KINDS:
        frame = bytearray(encode(registration(FIRST, kind=kind)))
        frame[4] = 1 - kind
        assert check(ONES[kind], bytes(frame)) is None


def test_json_that_is_none_does_not_pass_for_a_binary_header() -> None:
    """A binary name that looks like both places of a JSON header."""
    name = b'"bodyCrc32":"","opaque":,'
    cached = cached_of(registration(FIRST, kind=BINARY, brokerName=name.decode()))
    asked = registration(FIRST, kind=BINARY, brokerName=name.decode())
    frame = encode(asked)
    assert check(cached, frame)
    header = frame[8:13] + frame[17:25] + frame[29 : -len(FIRST)]
    crc = str(body_crc32(FIRST)).encode()
    header = header.replace(bytes([0, 0, 0, len(crc)]) + crc, bytes(3))
    header = header.replace(name, b'"bodyCrc32":"%s","opaque":5,' % crc)
    odd = struct.pack(">iI", 4 + len(header) + len(FIRST), len(header)) + header + FIRST
    assert check(cached, odd) is None
    with pytest.raises(FrameError):
        decode(odd[4:])


@pytest.mark.parametrize("change", [-1, 1])
def test_fields_that_do_not_fill_the_header(change: int) -> None:
    frame = encode(registration(FIRST, kind=BINARY))
    (length,) = struct.unpack_from(">i", frame, 25)
    assert check(ONES[BINARY], frame[:25] + struct.pack(">i", length + change) + frame[29:]) is None


def test_it_is_of_one_connection_and_of_the_options_it_was_made_under() -> None:
    frame, cached = encode(registration(FIRST)), ONES[JSON]
    for connection, options, found in (
        ("1", OPTIONS, True),
        ("2", OPTIONS, False),
        ("1", replace(OPTIONS), False),
    ):
        cached.set_connection(connection, options)
        assert (cached.find(frame, 0, len(frame)) is not None) == found


def test_a_new_table_takes_the_place_of_the_last() -> None:
    cached = cached_of(registration(FIRST))
    size = cached.replies.size
    keep(cached, registration(body_of(counter=2)))
    assert (len(cached), cached.replies.size) == (1, size)
    assert check(cached, encode(registration(body_of(2, counter=2))))
    assert check(cached, encode(registration(FIRST))) is None


def test_what_is_dropped_is_not_found() -> None:
    cached = cached_of(registration(FIRST))
    repeat = check(cached, encode(registration(FIRST)))
    assert repeat
    keep(cached, registration(FIRST))
    cached.drop(repeat.cached)
    assert len(cached) == 1  # another has taken its place
    again = check(cached, encode(registration(FIRST)))
    assert again
    cached.drop(again.cached)
    cached.drop(again.cached)
    assert check(cached, encode(registration(FIRST))) is None
    assert cached.replies.size == 0


def test_their_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_registrations, "BYTES_MOST", 50_000)
    cached = empty()
    for number in range(50):
        keep(cached, registration(FIRST, brokerName=f"broker-{number}"))
        assert cached.replies.size <= 50_000
    assert check(cached, encode(registration(FIRST, brokerName="broker-49")))
    assert check(cached, encode(registration(FIRST, brokerName="broker-0"))) is None


@pytest.mark.parametrize("answers", [CachedRequests.answers, cached_answers])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_among_short_frames_that_are_cached(kind: SerializeType, answers: Answering) -> None:
    counters = Counters()
    cached = cached_of(registration(FIRST, kind=kind), counters=counters)
    frames = requests_of(counters=counters, longer=cached.find)
    cached.set_connection("1", OPTIONS)
    short = Command(RequestCode.BROKER_HEARTBEAT, 5, 0, 400, ext={"brokerName": "b"}, serialize_type=kind)
    frames.keep(encode(short), short, Reply(body=b"route"), RENEWALS)
    parts = [encode(short), encode(registration(body_of(2), kind=kind)), encode(short)]
    whole = b"".join(parts)
    for cut in range(len(whole) + 1):
        before = counters.cached_requests
        pieces, length, found = answers(frames, whole[:cut], 0.0, 1 << 20)
        count = counters.cached_requests - before
        passed = [len(b"".join(parts[:number])) for number in range(4)]
        assert length == max(place for place in passed if place <= cut)
        assert (count, len(found)) == ((length > 0) + (length == passed[3]), int(length >= passed[2]))
        assert any(pieces) == (count > 0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_whose_stamp_is_valid_is_answered_with_the_others(kind: SerializeType) -> None:
    counters, asked = Counters(), registration(body_of(2), kind=kind)
    cached = cached_of(registration(FIRST, kind=kind), counters=counters)
    frames = requests_of(counters=counters, longer=cached.find)
    cached.set_connection("1", OPTIONS)
    (entry,) = cached.replies.entries.values()
    entry.until = 1.1
    pieces, length, checks = frames.answers(encode(asked) * 2, 1.0, 1 << 20)
    assert b"".join(pieces) == encode(asked.reply(0, ext=RENEWED.ext, body=RENEWED.body)) * 2
    assert (length, checks, counters.cached_requests) == (2 * len(encode(asked)), [], 2)
    (due,) = frames.answers(encode(asked) * 2, 1.1, 1 << 20)[2][:1]  # by then it is the store that knows
    assert due.frame == encode(asked)


def test_bytes_that_are_no_frame() -> None:
    for kind in KINDS:
        frame = encode(registration(FIRST, kind=kind))
        for word in (0, 1, 21, len(frame), 0xFFFFFF):
            bad = frame[:4] + struct.pack(">I", kind << 24 | word) + frame[8:]
            assert check(ONES[kind], bad) is None
            with pytest.raises(FrameError):
                decode(bad[4:])
