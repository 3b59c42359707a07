"""Whatever bytes come: a value or our error, never anything else."""

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.cluster import decode_broker_member_group, decode_cluster_info
from rocketmq_remoting.command import Command, SerializeType, decode, encode
from rocketmq_remoting.data_version import decode_data_version
from rocketmq_remoting.errors import BodyError, FrameError
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.heartbeat import decode_heartbeat
from rocketmq_remoting.kv_table import decode_kv_table
from rocketmq_remoting.registration import decode_register_broker_body
from rocketmq_remoting.route import decode_mapping_info, decode_route
from rocketmq_remoting.tolerant_json import normalise
from rocketmq_remoting.topic_list import decode_topic_list
from tests.rocketmq_remoting.golden import ALL, recorded

INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(codec="utf-8"))
EXT = st.none() | st.dictionaries(TEXT, TEXT, max_size=4)
JSON_COMMANDS = st.builds(
    Command,
    INT32,
    st.none() | INT32,
    INT32,
    INT32,
    st.integers(0, 13),
    st.none() | TEXT.filter(bool),
    EXT,
    st.binary(),
)
BINARY_COMMANDS = st.builds(
    Command,
    st.integers(-32768, 32767),
    INT32,
    INT32,
    st.integers(-32768, 32767),
    st.integers(-128, 127),
    st.none() | TEXT.filter(bool),
    EXT.map(lambda ext: ext or None),
    st.binary(),
    st.just(SerializeType.ROCKETMQ),
)

FRAMES = sorted({r.frame for name in ALL for r in recorded(name)}, key=len)[::7][:100]
BODIES = sorted({r.command.body for name in ALL for r in recorded(name) if r.command.body}, key=len)[::5]


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Real bytes with a few places overwritten, put in, or cut out."""
    data = draw(whole)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 4))
        patch = draw(
            st.binary(max_size=4)
            | st.sampled_from([b"null", b"{", b"}", b"[", b",", b'"', b":", b"0", b"-1"])
        )
        data = data[:at] + patch + data[at + cut :]
    return data


def plain(body: bytes) -> object:
    return decode_register_broker_body(body, version=513, compressed=False, now_ms=0)


def old(body: bytes) -> object:
    return decode_register_broker_body(body, version=1, compressed=False, now_ms=0)


def compressed(body: bytes) -> object:
    return decode_register_broker_body(body, version=513, compressed=True, now_ms=0)


def inflated(body: bytes) -> object:
    """A sound stream with anything in it."""
    version = b'{"counter":1}'
    return compressed(zlib.compress(struct.pack(">i", len(version)) + version + body, 1))


DECODERS: list[Callable[[bytes], Any]] = [
    plain,
    old,
    compressed,
    inflated,
    decode_route,
    decode_mapping_info,
    decode_cluster_info,
    decode_broker_member_group,
    decode_topic_list,
    decode_kv_table,
    decode_heartbeat,
    decode_data_version,
    normalise,
    split_signature,
]


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.__name__)
@given(st.binary() | damaged(st.sampled_from(BODIES)))
def test_any_body_is_read_or_refused(decoder: Callable[[bytes], Any], body: bytes) -> None:
    reason = "one line"
    try:
        decoder(body)
    except BodyError as error:
        reason = str(error)
    assert len(reason.splitlines()) == 1


@given(st.binary() | damaged(st.sampled_from(FRAMES)))
@settings(max_examples=500)
def test_any_frame_is_read_or_refused(frame: bytes) -> None:
    """What is read can be written and read again."""
    reason = "one line"
    try:
        command = decode(frame[4:])
        assert decode(encode(command)[4:]).ext == command.ext
    except FrameError as error:
        reason = str(error)
    assert len(reason.splitlines()) == 1


@given(
    st.lists(st.binary() | damaged(st.sampled_from(FRAMES)) | st.sampled_from(FRAMES), max_size=5), st.data()
)
def test_any_stream_is_the_same_however_it_is_cut(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    size = data.draw(st.integers(1, len(stream) + 1))
    cut = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert taken(cut) == taken([stream])


def taken(reads: list[bytes]) -> list[Command | str]:
    reader = FrameReader()
    seen: list[Command | str] = []
    for read in reads:
        reader.feed(read)
        try:
            while (command := reader.next_command()) is not None:
                seen.append(command)
        except FrameError as error:
            return [*seen, error.reason]
    return seen


@given(JSON_COMMANDS | BINARY_COMMANDS)
def test_any_command_survives_the_round_trip(command: Command) -> None:
    assert decode(encode(command)[4:]) == command
