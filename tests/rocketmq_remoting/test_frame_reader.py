"""Where a stream of bytes stops being frames, and how soon that is noticed."""

import struct
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.frame import FRAME_MAX_LENGTH, HEADER_MAX_LENGTH, FrameReader

REQUEST = Command(206, 7, version=373)
FRAME = encode(REQUEST)


def start(length: int, header_length: int = 2, kind: int = 0) -> bytes:
    return struct.pack(">iI", length, kind << 24 | header_length)


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        pytest.param(struct.pack(">i", 16777213), "too_big", id="length word over the limit"),
        pytest.param(struct.pack(">i", 2**31 - 1), "too_big", id="greatest length word"),
        pytest.param(struct.pack(">i", -1), "frame", id="negative length"),
        pytest.param(struct.pack(">i", -(2**31)), "frame", id="least length word"),
        pytest.param(struct.pack(">i", 0), "frame", id="length 0"),
        pytest.param(struct.pack(">i", 3), "frame", id="no room for the header word"),
        pytest.param(start(100, 97), "frame", id="header longer than the frame"),
        pytest.param(start(100, 0), "frame", id="no JSON header"),
        pytest.param(start(100, 0, 1), "frame", id="no binary header"),
        pytest.param(start(100, 2, 2), "frame", id="serialize type 2"),
        pytest.param(start(100, 2, 255), "frame", id="serialize type 255"),
        pytest.param(b"GET ", "too_big", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02", "too_big", id="TLS"),
        pytest.param(start(2_000_000, HEADER_MAX_LENGTH + 1), "header", id="JSON header over its limit"),
        pytest.param(start(2_000_000, HEADER_MAX_LENGTH + 1, 1), "header", id="binary header over its limit"),
        pytest.param(start(17, 13) + b'{"code":105 x', "header", id="header cut off"),
        pytest.param(start(24, 20, 1) + bytes(20), "header", id="binary header of 20 bytes"),
    ],
)
def test_what_is_no_frame_is_refused_as_soon_as_it_shows(received: bytes, reason: str) -> None:
    """The last byte given tells; nothing is refused before it, and nothing is waited for after it."""
    reader = FrameReader()
    for byte in received[:-1]:
        reader.feed(bytes([byte]))
        assert reader.next_command() is None
    reader.feed(received[-1:])
    for _ in range(2):
        with pytest.raises(FrameError) as refused:
            reader.next_command()
        assert refused.value.reason == reason


@pytest.mark.parametrize("kind", SerializeType, ids=lambda kind: kind.name)
def test_the_biggest_frame_is_taken(kind: SerializeType) -> None:
    bare = Command(206, 7, serialize_type=kind)
    biggest = Command(206, 7, body=bytes(FRAME_MAX_LENGTH - len(encode(bare))), serialize_type=kind)
    frame = encode(biggest)
    assert len(frame) == FRAME_MAX_LENGTH
    reader = FrameReader()
    reader.feed(frame)
    assert reader.next_command() == biggest


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param([FRAME], id="whole"),
        pytest.param([bytes([byte]) for byte in FRAME], id="byte by byte"),
        pytest.param([FRAME[:4], FRAME[4:8], FRAME[8:]], id="at its seams"),
        pytest.param([b"", FRAME[:9], b"", FRAME[9:]], id="with empty reads"),
        pytest.param([bytearray(FRAME[:5]), memoryview(FRAME)[5:]], id="as other buffers"),
    ],
)
def test_a_frame_is_taken_however_it_comes(reads: list[bytes]) -> None:
    reader = FrameReader()
    for read in reads[:-1]:
        reader.feed(read)
        assert reader.next_command() is None
    reader.feed(reads[-1])
    assert reader.next_command() == REQUEST
    assert reader.next_command() is None
    assert reader.pending == 0


def test_frames_of_one_read_are_given_in_order_and_the_rest_is_kept() -> None:
    frames = [encode(Command(206, opaque)) for opaque in (7, 8, 9)]
    reader = FrameReader()
    reader.feed(b"".join(frames) + FRAME[:10])
    assert [command.opaque for command in iter(reader.next_command, None)] == [7, 8, 9]
    assert reader.pending == 10
    reader.feed(FRAME[10:] + frames[1])
    assert [command.opaque for command in iter(reader.next_command, None)] == [7, 8]
    assert reader.pending == 0


def test_a_read_may_be_added_before_the_commands_of_the_one_before_are_taken() -> None:
    reader = FrameReader()
    frames = [encode(Command(206, opaque, body=bytes(opaque))) for opaque in range(50)]
    taken = []
    for frame in frames:
        reader.feed(frame + frame[:9])
        reader.feed(frame[9:])
        taken.append(reader.next_command())
    while (command := reader.next_command()) is not None:
        taken.append(command)
    assert [command.opaque for command in taken if command] == [
        n for opaque in range(50) for n in (opaque, opaque)
    ]


@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(SerializeType), st.sampled_from([0, 5, 40_000, 200_000])),
        min_size=1,
        max_size=5,
    ),
    sizes=st.lists(st.sampled_from([1, 8, 30, 5_000, 16_384, 70_000, 500_000]), min_size=1, max_size=10),
    late=st.booleans(),
    lets_go=st.booleans(),
)
@example(kinds=[(SerializeType.JSON, 200_000)] * 3, sizes=[70_000] * 6, late=True, lets_go=False)
@example(kinds=[(SerializeType.JSON, 200_000)] * 3, sizes=[70_000] * 6, late=True, lets_go=True)
def test_wherever_reads_are_cut(
    kinds: list[tuple[SerializeType, int]], sizes: list[int], late: bool, lets_go: bool
) -> None:
    """Also when commands are asked for after two reads only; each knows its frame, until it is let go."""
    commands = [
        Command(206, opaque, body=bytes([opaque]) * length, serialize_type=kind)
        for opaque, (kind, length) in enumerate(kinds)
    ]
    stream, reader, taken, at = b"".join(map(encode, commands)), FrameReader(), 0, 0
    for turn, size in enumerate((*sizes, len(stream))):
        reader.feed(stream[at : at + size])
        at = min(at + size, len(stream))
        if late and turn % 2 == 0 and at < len(stream):
            continue
        while (command := reader.next_command()) is not None:
            assert command == commands[taken]
            assert reader.last_frame == encode(command)
            taken += 1
        if lets_go:
            reader.drop_consumed()
            assert reader.last_frame == b""
        assert reader.pending == at - sum(len(encode(command)) for command in commands[:taken])
    assert taken == len(commands)


def test_a_body_that_came_alone_is_not_copied() -> None:
    body, reader = bytes(300_000), FrameReader()
    frame = encode(Command(206, 7, body=body))
    reader.feed(frame[: -len(body)])
    assert reader.next_command() is None
    reader.feed(body)
    command = reader.next_command()
    assert command is not None
    assert command.body is body
    assert reader.last_frame == frame


@pytest.mark.parametrize("pieces", [1, 7])
def test_consumed_bytes_are_freed(pieces: int) -> None:
    frame, reader = encode(Command(206, 7, body=bytes(300_000))) + start(100, 20), FrameReader()
    tracemalloc.start()
    try:
        size = -(-len(frame) // pieces)
        for at in range(0, len(frame), size):
            reader.feed(bytearray(frame[at : at + size]))
        command = reader.next_command()
        assert command is not None
        del command
        reader.drop_consumed()
        assert tracemalloc.get_traced_memory()[0] < 5_000
        assert reader.next_command() is None
        reader.drop_consumed()
    finally:
        tracemalloc.stop()
    reader.feed(bytes(100))
    assert reader.pending == 108


def test_a_frame_that_comes_byte_by_byte_takes_no_more_room_than_it_has_bytes() -> None:
    frame, reader = encode(Command(206, 7, body=bytes(300_000))), FrameReader()
    tracemalloc.start()
    try:
        for at in range(len(frame) - 1):
            reader.feed(frame[at : at + 1])
            assert reader.next_command() is None
        assert tracemalloc.get_traced_memory()[0] < 2 * len(frame)
    finally:
        tracemalloc.stop()


def test_a_long_header_that_is_none_is_refused_again_and_again() -> None:
    bad = start(4 + 150_000, 40_000) + bytes(150_000)
    reader = FrameReader()
    for at in range(0, len(bad), 60_000):
        reader.feed(bad[at : at + 60_000])
        if at + 60_000 < len(bad):
            assert reader.next_command() is None
    for _ in range(4):
        with pytest.raises(FrameError):
            reader.next_command()


def test_what_was_fed_may_be_reused_by_its_owner() -> None:
    received = bytearray(FRAME)
    reader = FrameReader()
    reader.feed(received)
    received[:] = bytes(len(received))
    assert reader.next_command() == REQUEST


@pytest.mark.parametrize(
    ("frames", "size"),
    [
        pytest.param([encode(Command(103, 1, body=bytes(8_000_000)))], 400, id="a big frame in small reads"),
        pytest.param([FRAME] * 40_000, 4_000_000, id="many frames in one read"),
        pytest.param([FRAME] * 20_000, 50, id="many frames in small reads"),
    ],
)
def test_the_work_grows_with_the_bytes_and_no_faster(frames: list[bytes], size: int) -> None:
    """Quadratic work would take minutes here, linear work takes a fraction of a second."""
    stream = b"".join(frames)
    reader = FrameReader()
    began = time.process_time()
    count = 0
    for at in range(0, len(stream), size):
        reader.feed(stream[at : at + size])
        while reader.next_command() is not None:
            count += 1
    assert count == len(frames)
    assert time.process_time() - began < 5
